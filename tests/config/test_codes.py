"""Every code: a configuration that must have this finding at this line, and one close to it that must not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hyper_proxy.config.codes import CODES, ERROR, WARNING
from hyper_proxy.config.rules import RULES
from tests.config.texts import FILE, FULL, LEVELS, MORE, PLAIN, POOLED, ROOMED, ROUTE, change, codes, line_of

OF_FILES = {"HP101", "HP102", "HP111", "HP112", "HP407"}
"""Shown in test_load.py and tests/plugins/test_check.py: these are about files, not about their text."""


@dataclass(frozen=True)
class Case:
    """A change of a text that is good: `bad` instead of `old` must have the finding, `good` instead of it must not."""

    code: str
    text: str
    old: str
    bad: str
    good: str
    at: str = ""
    """A piece of the line of the finding; "" is the whole of `bad`."""


MEMCACHE_LEVEL = 'storage = "memcache"\ndistribution = "modula"'
BEGINS = "begins = 2030-01-31T02:00:00Z }"
MOVING = change(POOLED, ROUTE, f'route = {{ move = "spare", of = "main", {BEGINS}')

CASES = (
    Case("HP103", PLAIN, "[[instance]]", "[[instance]", "[[instance]] # ]"),
    Case("HP104", PLAIN, 'name = "user"', 'nam = "user"\nname = "u"', '"name" = "user"', "nam ="),
    Case("HP105", FULL, "dbs = 4", 'dbs = "4"', "dbs = 0x4"),
    Case("HP106", FULL, "keep = 3", "keep = -1", "keep = 0"),
    Case("HP107", PLAIN, 'storage = "redis"', "", 'storage = "redis"', "[[instance.level]]"),
    Case("HP108", PLAIN, 'protocol = "redis"', 'protocol = "mysql"', 'protocol = "redis" # mysql'),
    Case("HP109", PLAIN, "127.0.0.1:6380", "127.0.0.1:638O", "localhost:6380"),
    Case("HP110", PLAIN, "10.0.0.1:6379:1 a", "10.0.0.1:6379:0 a", "10.0.0.1:6379:3 a"),
    Case("HP201", FULL, 'name = "feed"', 'name = "user" # 2', 'name = "User"'),
    Case("HP202", FULL, "127.0.0.1:11312", "127.0.0.1:6380", "127.0.0.1:16380"),
    Case("HP203", PLAIN, ":1 b", ":1 a", ":1 A"),
    Case("HP204", PLAIN, 'storage = "redis"', 'storage = "lushan"\nlushan_db = 1', 'storage = "memcache"', "storage ="),
    Case("HP205", FULL, MEMCACHE_LEVEL, f"db = 1\n{MEMCACHE_LEVEL}", MEMCACHE_LEVEL, "db = 1\n"),
    Case("HP206", FULL, ', lushan_db = { hash = "crc32a", count = 8 }', "", ", lushan_db = 0", "level = [{"),
    Case("HP207", PLAIN, "servers =", 'distribution = "ketama-x"\nservers =', 'distribution = "ketama"\nservers =',
         "ketama-x"),
    Case("HP208", FULL, 'password = "secret"', "", 'password = "s"', 'username = "proxy"'),
    Case("HP209", PLAIN, "10.0.0.1:6379:1 a", "127.0.0.1:6380:1 a", "127.0.0.1:6379:1 a"),
    Case("HP210", FULL, '"data/local.db"', '"data/local.db", "data/other.db"', '"data/other.db"'),
    Case("HP211", FULL, '["10.0.0.8:3306 w"]', '["10.0.0.8:3306", "10.0.0.9:3306"]', "[]", "writers ="),
    Case("HP212", FULL, "where = { deleted = 0 }", "where = { uid = 0 }", "where = { uid_ = 0 }"),
    Case("HP213", LEVELS, 'storage = "redis"', 'storage = "mysql"', 'storage = "redis" # mysql'),
    Case("HP218", LEVELS, 'storage = "redis"', 'storage = "redis"\non_miss = "fail"',
         'storage = "redis"\nwrite = "through"\non_miss = "fail"', "on_miss"),
    Case("HP214", POOLED, '"spare" }', '"sparse" }', '"spare"  }', "route ="),
    Case("HP222", FULL, 'name = "user.profile"', 'name = "user.profile_{table}"',
         'tables = 2, name = "user.profile_{table}"', "table ="),
    Case("HP224", PLAIN, 'storage = "redis"', 'storage = "redis"\nmasters = ["m"]', 'storage = "redis"', "masters ="),
    Case("HP223", FULL, "where = { deleted = 0 }", 'heartbeat = { name = "b", time = "t" }', "heartbeat = {}"),
    Case("HP223", FULL, 'writers = ["10.0.0.8:3306 w"]', "max_lag_s = 2", 'writers = ["10.0.0.8:3306"]\nmax_lag_s = 2'),
    Case("HP225", ROOMED, 'writes = "single"', 'writes = "mirror"', "hold_s = 1"),
    Case("HP226", MOVING, BEGINS, BEGINS.replace("}", ", back = 2030-01-31T02:00:09Z }"),
         BEGINS.replace("}", ", back = 2030-01-31T02:00:10Z }")),
    Case("HP228", FULL, '"/tmp/hyper_proxy.log"', '"/nowhere/proxy.log"', '"/dev/stderr"'),
    Case("HP228", FULL, '"/tmp/hyper_proxy.log"', '"/tmp"', '""'),
    Case("HP410", FULL, "workers = 2", 'user = "n0body-at-all"', 'user = "root"'),
    Case("HP410", FULL, "workers = 2", 'group = "n0body-at-all"', 'group = "root"'),
    Case("HP410", FULL, "workers = 2", 'pidfile = "/nowhere/pid"', 'pidfile = "/tmp/pid"'),
    Case("HP410", FULL, '"unix:/tmp/user.sock"', '"unix:/nowhere/user.sock"', '"unix:/tmp/other.sock"'),
    Case("HP410", FULL, '"127.0.0.1:22122"', '"unix:/nowhere/admin.sock"', '"unix:/tmp/admin.sock"'),
    Case("HP227", LEVELS, 'storage = "redis"', 'storage = "redis"\ndistribution = "random"',
         'storage = "redis"\nread_only = true\ndistribution = "random"', "distribution"),
    Case("HP301", FULL, "backoff.max_ms = 1000", "backoff.max_ms = 9", "backoff.max_ms = 10"),
    Case("HP302", FULL, 'name = "page"', 'limits.max_key_bytes = 251\nname = "page"',
         'limits.max_key_bytes = 250\nname = "page"', "= 251"),
    Case("HP303", FULL, "connect_ms = 20", "connect_ms = 101", "connect_ms = 100"),
    Case("HP401", PLAIN, "servers =", 'hash = "crc32"\ndistribution = "ketama"\nservers =',
         'hash = "crc32a"\nservers =', 'distribution = "ketama"'),
    Case("HP402", FULL, '"FLUSHALL"', '"FLUSHAL"', '"FLUSHDB"'),
    Case("HP403", FULL, "127.0.0.1:22122", "0.0.0.0:22122", "localhost:22122"),
    Case("HP404", PLAIN, "10.0.0.2:6379:1 b", "10.0.0.1:6379:1 b", "10.0.0.1:6380:1 b"),
    Case("HP406", POOLED, '"spare" }', '"main" }', '"spare"  }', "[[instance.level.pool]]"),
    Case("HP408", f"{LEVELS}{MORE}{FILE}", "other.db", "keys.db\"] # [\"", "third.db"),
    Case("HP409", f"{ROOMED}on_return = \"empty\"\n", 'on_return = "empty"', "hold_s = 1", 'on_return = "keep"',
         "[instance.level.rooms]"),
    Case("HP411", FULL, 'password = "secret"', 'password = "${REDIS_PASSWORD}"', 'password = "$ecret{}"'),
    Case("HP405", FULL, ', expires = "until" }', " }", ', expires = "ends" }', "table ="),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_a_code_fires_where_it_should_and_only_there(case: Case) -> None:
    bad, good = change(case.text, case.old, case.bad), change(case.text, case.old, case.good)
    assert (case.code, line_of(bad, case.at or case.bad)) in codes(bad)
    assert case.code not in dict(codes(good))


def test_every_code_has_a_case_and_every_rule_a_code() -> None:
    shown = {case.code for case in CASES} | OF_FILES | {"HP304"}
    assert shown == set(CODES)
    assert set(RULES) <= set(CODES)
    assert {row.level for row in CODES.values()} == {ERROR, WARNING}
    assert all((row.level == WARNING) == (code in {"HP303", "HP304"} or code > "HP4") for code, row in CODES.items())
