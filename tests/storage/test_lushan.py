"""Lushan: plain keys from the client, `$db-$key` to the servers, the client's keys again in the answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pytest

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import LushanFixed, LushanHashed, LushanPrefixed
from hyper_proxy.hashing import build, build_hash
from hyper_proxy.hashing.lushan import db_rule
from tests.kit.fakes import FakeServer
from tests.kit.servers import Running
from tests.kit.worker import Worker
from tests.protocol.raw import Raw

CONFIG = """
[[instance]]
name = "lu"
protocol = "memcache"
listen = ["127.0.0.1:21313"]
on_partial = "{on_partial}"
[[instance.level]]
storage = "lushan"
lushan_db = {rule}
servers = [{servers}]
timeout = {{ connect_ms = 2000, read_ms = 1000 }}
"""

FIXED = "3"
HASHED = '{ hash = "crc32a", count = 8 }'
PREFIXED = '{ separator = ":", map = { user = 1, feed = 2 }, default = 9 }'
STRICT = '{ separator = ":", map = { user = 1, feed = 2 } }'


@contextmanager
def served(addresses: list[str], rule: str, on_partial: str = "error") -> Iterator[tuple[Worker, Raw]]:
    servers = ", ".join(f'"{address}:1 n{index}"' for index, address in enumerate(addresses))
    with Worker(CONFIG.format(servers=servers, rule=rule, on_partial=on_partial)) as worker:
        raw = Raw(worker.ports["lu"])
        try:
            yield worker, raw
        finally:
            raw.close()


def test_the_rules() -> None:
    assert db_rule(LushanFixed(3))(b"x") == 3
    crc = build_hash("crc32a")
    assert db_rule(LushanHashed("crc32a", 8))(b"12345") == crc.value(b"12345", 0, 5) % 8
    by_prefix = db_rule(LushanPrefixed(":", (("user", 1), ("feed", 2)), 9))
    assert [by_prefix(key) for key in (b"user:5", b"feed:a:b", b"user", b"other:5", b":")] == [1, 2, 9, 9, 9]
    strict = db_rule(LushanPrefixed(":", (("user", 1),)))
    assert strict(b"user:5") == 1
    with pytest.raises(ClientError, match="no lushan database"):
        strict(b"feed:5")


@pytest.mark.parametrize("rule", [FIXED, HASHED, PREFIXED])
def test_the_servers_know_other_keys_than_the_client(memcached_nodes: list[Running], rule: str) -> None:
    """Real memcacheds hold, under `$db-$key`, what Lushan servers would."""
    keys = [b"%d" % (number * 7919) for number in range(30)] + [b"user:%d" % number for number in range(10)]
    with served([node.address for node in memcached_nodes], rule) as (worker, raw):
        level = worker.config.instances[0].levels[0]
        placement = build(level.hash, level.distribution, level.hash_tag, level.servers)
        assert level.lushan_db is not None
        db_of = db_rule(level.lushan_db)
        for key in keys[::2]:
            node = memcached_nodes[placement.locate(key, 0, len(key))]
            there = b"%d-%b" % (db_of(key), key)
            assert node.ask(b"set %b 5 0 %d\r\n%b\r\n" % (there, len(there), there)) == b"STORED\r\n"

        def item(key: bytes) -> bytes:
            there = b"%d-%b" % (db_of(key), key)
            return b"VALUE %b 5 %d\r\n%b\r\n" % (key, len(there), there)

        for key in keys:
            assert raw.memcache(b"get %b\r\n" % key) == (item(key) if key in keys[::2] else b"") + b"END\r\n"
        asked = keys + keys[::-1]
        whole = b"".join(item(key) for key in asked if key in keys[::2]) + b"END\r\n"
        assert raw.memcache(b"get %b\r\n" % b" ".join(asked)) == whole


class GetOnly:
    """A Lushan server that takes every request but get and version for a mistake, and remembers it."""

    garbage = surplus = b"ERROR\r\n"
    greetings = frozenset({b"VERSION"})

    def __init__(self) -> None:
        self.mistakes: list[bytes] = []

    def read(self, stream: BinaryIO) -> list[bytes]:
        return stream.readline().split()

    def answer(self, request: list[bytes]) -> bytes:
        if request[0] == b"version":
            return b"VERSION 0.1\r\n"
        if request[0] != b"get":
            self.mistakes.append(b" ".join(request))
            return b"ERROR\r\n"
        return b"".join(b"VALUE %b 0 %d\r\n%b\r\n" % (key, len(key), key) for key in request[1:]) + b"END\r\n"


def test_nothing_but_get_reaches_a_server() -> None:
    speech = GetOnly()
    with FakeServer(speech) as fake, served([fake.address], FIXED) as (_, raw):
        assert raw.memcache(b"get 1 2 1\r\n") == (
            b"VALUE 1 0 3\r\n3-1\r\nVALUE 2 0 3\r\n3-2\r\nVALUE 1 0 3\r\n3-1\r\nEND\r\n"
        )
        assert raw.memcache(b"gets 1\r\n") == b"CLIENT_ERROR gets is not served: Lushan has no cas; use get\r\n"
        requests = [
            b"gat 1 1\r\n", b"set 1 0 0 1\r\nx\r\n", b"add 1 0 0 1\r\nx\r\n", b"cas 1 0 0 1 1\r\nx\r\n",
            b"delete 1\r\n", b"incr 1 1\r\n", b"touch 1 1\r\n", b"mg 1 v\r\n", b"ms 1 1\r\nx\r\n", b"md 1\r\n",
            b"ma 1\r\n", b"me 1\r\n",
        ]  # fmt: skip
        for request in requests:
            name = request.split()[0]
            assert raw.memcache(request) == b"CLIENT_ERROR %b is not served: Lushan serves get only\r\n" % name
        assert raw.memcache(b"set 1 0 0 1 noreply\r\nx\r\ndelete 1 noreply\r\n") == b""
        assert raw.memcache(b"flush_all\r\n") == b"CLIENT_ERROR flush_all not allowed\r\n"
        assert raw.memcache(b"version\r\n").startswith(b"VERSION 1.6.18-hyper_proxy-")
        assert b"STAT pid " in raw.memcache(b"stats\r\n")
        reply = raw.memcache(b"set 1 0 0 2000000\r\n" + b"x" * 2000000 + b"\r\n")
        assert reply.startswith(b"SERVER_ERROR object too large")
        assert speech.mistakes == []


def test_keys_that_lushan_would_skip_or_that_have_no_database_are_refused() -> None:
    with FakeServer(GetOnly()) as fake, served([fake.address], STRICT) as (_, raw):
        fits, long = b"user:" + b"5" * 243, b"user:" + b"5" * 244
        assert raw.memcache(b"get %b\r\n" % fits).startswith(b"VALUE user:555")
        reply = raw.memcache(b"get %b\r\n" % long)
        assert reply == b"CLIENT_ERROR the key is longer than 250 bytes with the number of its lushan database\r\n"
        assert raw.memcache(b"get user:1 %b\r\n" % long) == reply
        reply = raw.memcache(b"get user:1 else:2\r\n")
        assert reply == b"CLIENT_ERROR no lushan database is configured for the prefix of this key\r\n"
        assert raw.memcache(b"get user:1\r\n") == b"VALUE user:1 0 8\r\n1-user:1\r\nEND\r\n"


@pytest.mark.parametrize("on_partial", ["error", "nil"])
def test_a_server_that_answers_another_question_or_an_error(on_partial: str) -> None:
    replies: list[bytes] = []

    class Scripted(GetOnly):
        def answer(self, request: list[bytes]) -> bytes:
            return replies.pop(0) if replies and request[0] == b"get" else super().answer(request)

    good = b"VALUE 1 0 3\r\n3-1\r\nEND\r\n"
    for wrong, told in [
        (b"VALUE 3-2 0 1\r\nx\r\nEND\r\n", b"SERVER_ERROR instance 'lu' node 'n0 ("),
        (b"VALUE 1 0 1\r\nx\r\nEND\r\n", b"SERVER_ERROR instance 'lu' node 'n0 ("),
        (b"SERVER_ERROR timeout\r\n", b"SERVER_ERROR timeout (1 of 1 keys)\r\n"),
        (b"VALUE 3-1 0 1\r\nx\r\nSERVER_ERROR timeout\r\n", b"SERVER_ERROR timeout (1 of 1 keys)\r\n"),
    ]:
        with FakeServer(Scripted()) as fake, served([fake.address], FIXED, on_partial) as (_, raw):
            assert raw.memcache(b"get 1\r\n") == good
            replies.append(wrong)
            reply = raw.memcache(b"get 1\r\n")
            assert reply.startswith(told) if on_partial == "error" else reply == b"END\r\n"
