"""A good configuration broken in many ways: each is refused, with the finding at the line that was broken."""

from __future__ import annotations

import pytest

from hyper_proxy.config.load import inspect_text
from hyper_proxy.config.model import Config
from tests.config.texts import FULL, PLAIN, change

MUTATIONS: tuple[tuple[str, str, str], ...] = (
    # misspelt, misplaced, missing
    ("workers = 2", "worker = 2", "HP104"),
    ("workers = 2", "Workers = 2", "HP104"),
    ("workers = 2", "read_ms = 2", "HP104"),
    ("[proxy]", "[proxi]", "HP104"),
    ("[admin]", "[stats]", "HP104"),
    ("[log]", "[logs]", "HP104"),
    ("drain_timeout_s", "drain-timeout-s", "HP104"),
    ("drain_timeout_s", "drain_timeout", "HP104"),
    ("prepare_timeout_s", "prepare_timeout_ms", "HP104"),
    ("max_bytes =", "max_size =", "HP104"),
    ("on_partial", "on_partal", "HP104"),
    ("allow =", "allowed =", "HP104"),
    ("dbs = 4", "databases = 4", "HP104"),
    ("[instance.limits]", "[instance.limit]", "HP104"),
    ("[instance.limits]", "[limits]", "HP104"),
    ("max_key_bytes", "max_key", "HP104"),
    ("write_timeout_ms", "write_timeout_s", "HP104"),
    ("connections = 2", "server_connections = 2", "HP104"),
    ("connections = 2", "weight = 2", "HP104"),
    ("read_ms = 100", "response_ms = 100", "HP104"),
    ("backoff.base_ms", "backoff.min_ms", "HP104"),
    ("backoff.base_ms", "back_off.base_ms", "HP104"),
    ("count = 8", "modulo = 8, count = 8", "HP104"),
    ("count = 8", "counts = 8", "HP107"),
    ('hash = "crc32a"', 'hsh = "crc32a"', "HP104"),
    ('separator = ":"', 'seperator = ":"', "HP104"),
    ("default = 0", "defaults = 0", "HP104"),
    ('name = "user"\n', "", "HP107"),
    ('name = "page"\nprotocol = "memcache"', 'name = "page"', "HP107"),
    # types
    ("workers = 2", 'workers = "2"', "HP105"),
    ("workers = 2", "workers = 2.0", "HP105"),
    ("workers = 2", "workers = true", "HP105"),
    ("drain_timeout_s = 2.5", 'drain_timeout_s = "2.5"', "HP105"),
    ("drain_timeout_s = 2.5", "drain_timeout_s = false", "HP105"),
    ('listen = "127.0.0.1:22122"', 'listen = ["127.0.0.1:22122"]', "HP105"),
    ('listen = "127.0.0.1:22122"', "listen = 22122", "HP105"),
    ('file = "/tmp/hyper_proxy.log"', "file = false", "HP105"),
    ('level = "debug"', "level = 10", "HP105"),
    ('max_bytes = "64MB"', "max_bytes = 64.5", "HP105"),
    ('name = "user"', "name = 7", "HP105"),
    ('"0.0.0.0:6380"', "6380", "HP105"),
    ('"unix:/tmp/user.sock"', '["unix:/tmp/user.sock"]', "HP105"),
    ('allow = ["FLUSHALL", "keys"]', 'allow = "FLUSHALL"', "HP105"),
    ('allow = ["FLUSHALL", "keys"]', "allow = [1]", "HP105"),
    ("password = 'p\"a[#s'", "password = 1979-05-27", "HP105"),
    ("max_value_bytes = \"1 MB\"", "max_value_bytes = []", "HP105"),
    ("idle_timeout_s = 0.5", "idle_timeout_s = { s = 1 }", "HP105"),
    ('"10.0.0.1:6379:1 a"', '{ host = "10.0.0.1" }', "HP105"),
    ('hash_tag = "{}"', "hash_tag = {}", "HP105"),
    ("timeout = { connect_ms = 20, read_ms = 100, queue_ms = 50 }", "timeout = 100", "HP105"),
    ("timeout = { connect_ms = 20", "timeout = { connect_ms = 20.0", "HP105"),
    ("count = 8", 'count = "8"', "HP105"),
    ('hash = "crc32a"', "hash = 32", "HP105"),
    ("map.user = 1", 'map.user = "1"', "HP105"),
    ('lushan_db = { hash = "crc32a", count = 8 }', 'lushan_db = "8"', "HP105"),
    ("[proxy]\n", "[[proxy]]\n", "HP105"),
    # ranges and names
    ("workers = 2", "workers = -1", "HP106"),
    ("workers = 2", "workers = 100000", "HP106"),
    ("drain_timeout_s = 2.5", "drain_timeout_s = -0.1", "HP106"),
    ("drain_timeout_s = 2.5", "drain_timeout_s = inf", "HP106"),
    ("drain_timeout_s = 2.5", "drain_timeout_s = nan", "HP106"),
    ("prepare_timeout_s = 5", "prepare_timeout_s = 0", "HP106"),
    ('file = "/tmp/hyper_proxy.log"', 'file = "/tmp/"', "HP106"),
    ('level = "debug"', 'level = "DEBUG"', "HP106"),
    ('roll = "size"', 'roll = "weekly"', "HP106"),
    ('max_bytes = "64MB"', 'max_bytes = "64 elephants"', "HP106"),
    ('max_bytes = "64MB"', 'max_bytes = "-64MB"', "HP106"),
    ('max_bytes = "64MB"', "max_bytes = 1", "HP106"),
    ("keep = 3", "keep = -3", "HP106"),
    ('name = "user"', 'name = ""', "HP106"),
    ('name = "user"', 'name = "the user"', "HP106"),
    ('name = "user"', 'name = "user/1"', "HP106"),
    ('protocol = "redis"', 'protocol = "Redis"', "HP106"),
    ('protocol = "redis"', 'protocol = "memcached"', "HP106"),
    ('on_partial = "nil"', 'on_partial = "null"', "HP106"),
    ('"FLUSHALL"', '"FLUSH ALL"', "HP106"),
    ('"FLUSHALL"', '""', "HP106"),
    ("dbs = 4", "dbs = 0", "HP106"),
    ("max_key_bytes = 1024", "max_key_bytes = 0", "HP106"),
    ('max_value_bytes = "1 MB"', 'max_value_bytes = "1 TB"', "HP106"),
    ("max_arguments = 2000", "max_arguments = 1", "HP106"),
    ("max_pipeline = 50", "max_pipeline = 0", "HP106"),
    ("max_clients = 100", "max_clients = 0", "HP106"),
    ('max_line_bytes = "64KB"', "max_line_bytes = 10", "HP106"),
    ("idle_timeout_s = 0.5", "idle_timeout_s = -1", "HP106"),
    ("write_timeout_ms = 1000", "write_timeout_ms = 0", "HP106"),
    ('storage = "redis"', 'storage = "rdis"', "HP106"),
    ('hash = "md5"', 'hash = "md4"', "HP106"),
    ('hash = "md5"', 'hash = "md5-unsigned"', "HP106"),
    ('distribution = "ketama"', 'distribution = "katama"', "HP106"),
    ('distribution = "ketama"', 'distribution = ""', "HP106"),
    ('hash_tag = "{}"', 'hash_tag = "{"', "HP106"),
    ('hash_tag = "{}"', 'hash_tag = "{}}"', "HP106"),
    ('hash_tag = "{}"', 'hash_tag = "éé"', "HP106"),
    ("connections = 2", "connections = 0", "HP106"),
    ("connections = 2", "connections = 1000", "HP106"),
    ("db = 3", "db = -1", "HP106"),
    ("max_pending_bytes = 1_000_000", "max_pending_bytes = 1", "HP106"),
    ("dns_ttl_s = 10", "dns_ttl_s = 0", "HP106"),
    ("connect_ms = 20", "connect_ms = 0", "HP106"),
    ("read_ms = 100", "read_ms = -100", "HP106"),
    ("backoff.base_ms = 10", "backoff.base_ms = 0", "HP106"),
    ("count = 8", "count = 0", "HP106"),
    ('hash = "crc32a"', 'hash = "crc33"', "HP106"),
    ('hash = "crc32a"', 'hash = ""', "HP106"),
    ('separator = ":"', 'separator = ""', "HP106"),
    ('separator = ":"', 'separator = "::"', "HP106"),
    ("map.user = 1", "map.user = -1", "HP106"),
    ("map.user = 1", 'map."user:" = 1', "HP106"),
    ("default = 0", "default = -1", "HP106"),
    # not built
    ('protocol = "redis"', 'protocol = "mysql"', "HP108"),
    ('storage = "redis"', 'storage = "local"', "HP204"),
    # addresses
    ("127.0.0.1:22122", "unix:admin.sock", "HP109"),
    ("127.0.0.1:22122", "127.0.0.1", "HP109"),
    ("0.0.0.0:6380", ":6380", "HP109"),
    ("0.0.0.0:6380", "*:6380", "HP109"),
    ("[::1]:6381", "::1:6381", "HP109"),
    ("[::1]:6381", "[::1]:0", "HP109"),
    ("unix:/tmp/user.sock", "unix:user.sock", "HP109"),
    ("unix:/tmp/user.sock", "/tmp/user.sock", "HP109"),
    ("127.0.0.1:11311", "127.0.0.1:113110", "HP109"),
    ("10.0.0.1:6379:1 a", "10.0.0.1 a", "HP110"),
    ("10.0.0.1:6379:1 a", "10.0.0.1:6379:heavy a", "HP110"),
    ("10.0.0.1:6379:1 a", "10.0.0.1:6379:1 a b", "HP110"),
    ("10.0.0.1:6379:1 a", "redis://10.0.0.1:6379", "HP110"),
    ("redis-2.example.com:6379:2 b", "redis 2:6379:2 b", "HP110"),
    ("[fd00::3]:6379:1 c", "fd00::3:6379:1 c", "HP110"),
    ("unix:/run/d.sock:1 d", "unix:/run/d.sock:0 d", "HP110"),
    ("unix:/run/d.sock:1 d", "/run/d.sock:1 d", "HP110"),
    ('"data/local.db"', '"data/"', "HP110"),
    # tables of SQL
    ("max_connections = 4", "max_connections = 0", "HP106"),
    ('database = "app"', 'database = "a`b"', "HP106"),
    ('database = "app"', "database = 3", "HP105"),
    ('key = "uid"', 'key = "uid`"', "HP106"),
    ('key = "uid"', 'key = ""', "HP106"),
    ('key = "uid"', 'key = "123"', "HP106"),
    ('key = "uid"', 'key = "BODY"', "HP106"),
    ('key = "uid"', "key = 1", "HP105"),
    ('key = "uid"', 'keys = "uid"', "HP104"),
    ('key = "uid", ', "", "HP107"),
    ('"user.profile"', '"a.b.c"', "HP106"),
    ('"user.profile"', '"user."', "HP106"),
    ('"user.profile"', '".profile"', "HP106"),
    ('expires = "until"', 'expires = "un til"', "HP106"),
    ("deleted = 0", "deleted = 0.5", "HP106"),
    ("deleted = 0", "deleted = 9223372036854775808", "HP106"),
    ("deleted = 0", '"del eted" = 0', "HP106"),
    ("where = { deleted = 0 }", 'where = "deleted = 0"', "HP105"),
    ("where = { deleted = 0 }", "where = { body = 0 }", "HP212"),
    ('["10.0.0.8:3306 w"]', '["10.0.0.8:3306 w", "10.0.0.9:3306"]', "HP211"),
    ('["10.0.0.8:3306 w"]', '["10.0.0.8 w"]', "HP110"),
    ('["10.0.0.8:3306 w"]', '["10.0.0.8:3306 r"]', "HP203"),
    # contradictions
    ('name = "page"', 'name = "user" # again', "HP201"),
    ("127.0.0.1:11311", "127.0.0.1:22122", "HP202"),
    ("127.0.0.1:11312", "[::]:6381", "HP202"),
    (":2 b", ":2 a", "HP203"),
    (":1 d", ":1 a", "HP203"),
    ('storage = "redis"', 'storage = "lushan"', "HP204"),
    ('storage = "sqlite"', 'storage = "sqlite"\nhash = "md5" # of a file', "HP205"),
    ('storage = "sqlite"', 'storage = "sqlite"\ntimeout = { connect_ms = 1 }', "HP205"),
    ('name = "page"', 'password = "x"\nname = "page"', "HP205"),
    ('storage = "memcache"', 'db = 1\nstorage = "memcache"', "HP205"),
    ('storage = "memcache"', 'lushan_db = 1\nstorage = "memcache"', "HP205"),
    ('distribution = "ketama"', 'distribution = "ketama-300"', "HP207"),
    ("password = 'p\"a[#s'", "", "HP208"),
    ("10.0.0.1:6379:1 a", "127.0.0.1:6380:1 a", "HP209"),
    ("unix:/run/d.sock:1 d", "unix:/tmp/user.sock:1 d", "HP209"),
    ('"data/local.db"', '"data/local.db", "data/more.db"', "HP210"),
    ("backoff.max_ms = 1000", "backoff.max_ms = 1", "HP301"),
    ('username = "reader"', "", "HP206"),
    ('  table = { name = "user.profile", key = "uid", value = "body", expires = "until" }\n', "", "HP206"),
    ('database = "app"\n  table = { name = "user.profile"', 'table = { name = "profile"', "HP206"),
    ("max_connections = 4", "db = 1", "HP205"),
    ("max_connections = 4", 'max_pending_bytes = "1MB"', "HP205"),
    ("connections = 2\n", "max_connections = 2\n", "HP205"),
    # no toml
    ("workers = 2", "workers = two", "HP103"),
    ("workers = 2", "workers 2", "HP103"),
    ("workers = 2", "workers = 2 3", "HP103"),
    ("[admin]", "[admin", "HP103"),
    ('"0.0.0.0:6380",', '"0.0.0.0:6380"', "HP103"),
    ('level = "debug"', 'level = "debug', "HP103"),
    ("dbs = 4", "dbs = 4\ndbs = 5", "HP103"),
    ("[[instance]]\nname = \"local\"", "[instance]\nname = \"local\"", "HP103"),
)  # fmt: skip


def _changed_lines(text: str) -> range:
    """The lines in which a text differs from FULL, with the ones directly around a piece that was taken out."""
    old, new = FULL.split("\n"), text.split("\n")
    first = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    last = next(i for i, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False)) if a != b)
    return range(first + 1, max(len(new) - last, first + 1) + 1)


LINES = {
    # the whole section lacks something, or the fault shows one line further
    ('name = "user"\n', ""): "[[instance]]",
    ('name = "page"\nprotocol = "memcache"', 'name = "page"'): "[[instance]]",
    ("password = 'p\"a[#s'", ""): 'username = "app"',
    ('key = "uid", ', ""): "table =",
    ('username = "reader"', ""): "[[instance.level]] # of SQL",
    ('  table = { name = "user.profile", key = "uid", value = "body", expires = "until" }\n', ""):
        "[[instance.level]] # of SQL",
    ('"0.0.0.0:6380",', '"0.0.0.0:6380"'): '"[::1]:6381"',
}


def test_there_are_enough_ways() -> None:
    assert len(set(MUTATIONS)) == len(MUTATIONS) >= 100


@pytest.mark.parametrize(("old", "new", "code"), MUTATIONS)
def test_a_broken_configuration_is_refused_at_the_right_line(old: str, new: str, code: str) -> None:
    text = change(FULL, old, new)
    config, found = inspect_text(text, "t.toml")
    assert config is None
    lines = [finding.line for finding in found if finding.code == code and finding.level == "error"]
    if (old, new) in LINES:
        anchor = LINES[old, new]
        wanted = [number for number, line in enumerate(text.split("\n"), 1) if anchor in line]
    else:
        wanted = list(_changed_lines(text))
    assert set(lines) & set(wanted), f"{code} at one of {wanted}, found {[str(finding) for finding in found]}"


GOOD = (
    PLAIN,
    FULL,
    change(FULL, "workers = 2", "workers = 0"),
    change(FULL, "[proxy]\nworkers = 2\n", "[proxy]\n"),
    change(FULL, 'file = "/tmp/hyper_proxy.log"\n', ""),
    change(FULL, 'roll = "size"', 'roll = "none"'),
    change(FULL, 'max_bytes = "64MB"', 'max_bytes = "1GiB"'),
    change(FULL, 'max_bytes = "64MB"', "max_bytes = 65536"),
    change(FULL, 'allow = ["FLUSHALL", "keys"]', "allow = []"),
    change(FULL, "username = \"app\"\n", ""),
    change(FULL, "drain_timeout_s = 2.5", "drain_timeout_s = 0"),
    change(FULL, "idle_timeout_s = 0.5", "idle_timeout_s = 0"),
    change(FULL, '  hash = "md5"\n', ""),
    change(FULL, 'distribution = "ketama"', 'distribution = "random"'),
    change(FULL, 'hash_tag = "{}"', 'hash_tag = ""'),
    change(FULL, 'hash_tag = "{}"', 'hash_tag = "$$"'),
    change(FULL, '"10.0.0.1:6379:1 a"', '"10.0.0.1:6379 a"'),
    change(FULL, '"10.0.0.1:6379:1 a"', '"localhost:6379 a"'),
    change(FULL, '"unix:/run/d.sock:1 d"', '"unix:/run/d.sock"'),
    change(FULL, 'lushan_db = { hash = "crc32a", count = 8 }', "lushan_db = 0"),
    change(FULL, 'storage = "memcache"', 'storage = "lushan"\nlushan_db = 1'),
    change(FULL, 'storage = "memcache"\ndistribution = "modula"\nservers = ["10.0.0.3:11211", "10.0.0.4:11211:2"]',
           'storage = "sqlite"\nservers = ["x.db"]'),
    change(FULL, 'username = "reader"\n  password = "x"', 'username = "reader"'),
    change(FULL, '["10.0.0.8:3306 w"]', '["10.0.0.7:3306:2 r"]'),
    change(FULL, 'expires = "until"', 'expires = "until", id = "uid"'),
    change(FULL, "where = { deleted = 0 }\n", ""),
    FULL.replace("\n", "\r\n"),
)  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_a_good_configuration_has_no_error(text: str) -> None:
    config, found = inspect_text(text, "t.toml")
    assert isinstance(config, Config), [str(finding) for finding in found]
