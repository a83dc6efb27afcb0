"""redis verbs over each key-value storage: the same commands to redis-server and to ours, the same bytes back."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hyper_proxy.protocol.redis.commands import COMMANDS
from hyper_proxy.protocol.redis.translate import VERBS, execute
from hyper_proxy.storage.keyvalue import LONGEST_BYTES, KeyValue
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for
from tests.protocol.raw import Raw
from tests.protocol.redis_requests import KEYS, SHAPES, Generator

TTL_TOLERANCE_MS = 2000


@dataclass
class View:
    resp: int = 2


class Pair:
    """redis-server and the translation, side by side."""

    def __init__(self, raw: Raw, kv: KeyValue) -> None:
        self.raw, self.kv, self.view = raw, kv, View()

    def ours(self, *argv: bytes) -> bytes:
        return execute(self.kv, COMMANDS[argv[0].lower()], list(argv), self.view)

    def both(self, *argv: bytes) -> bytes:
        """The reply of redis, after checking that ours is the same."""
        if argv[0].lower() == b"dbsize":
            self.raw.redis(b"EXISTS", *KEYS)  # redis counts expired keys that nobody has looked at yet; ours does not
        theirs, ours = self.raw.redis(*argv), self.ours(*argv)
        assert same(argv[0].lower(), theirs, ours), f"{argv!r}: redis {theirs!r}, ours {ours!r}"
        return theirs

    def all(self, *lines: bytes) -> None:
        """Several commands without spaces in their words."""
        for line in lines:
            self.both(*line.split(b" "))


def same(verb: bytes, theirs: bytes, ours: bytes) -> bool:
    """Equal bytes; times may differ by what lies between the two calls, KEYS may come in another order."""
    if verb in (b"ttl", b"pttl", b"expiretime", b"pexpiretime") and theirs[:1] == ours[:1] == b":":
        left, right = int(theirs[1:]), int(ours[1:])
        tolerance = TTL_TOLERANCE_MS if verb.startswith(b"p") else TTL_TOLERANCE_MS // 1000
        return left == right or (min(left, right) >= 0 and abs(left - right) <= tolerance)
    if verb == b"keys":
        return sorted(theirs.split(b"\r\n")) == sorted(ours.split(b"\r\n"))
    return theirs == ours


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    with redis_server() as server:
        connection = Raw(server.port)
        yield connection
        connection.close()


@pytest.fixture
def pair(raw: Raw, kv: KeyValue) -> Pair:
    raw.redis(b"HELLO", b"2")
    raw.redis(b"FLUSHALL")
    return Pair(raw, kv)


@pytest.mark.parametrize("seed", range(40))
def test_random_sequences_get_the_replies_of_redis(pair: Pair, seed: int) -> None:
    generator = Generator(seed)
    for _ in range(300):
        argv = generator.request()
        if COMMANDS[argv[0].lower()].accepts(len(argv)):
            pair.both(*argv)


def test_the_random_sequences_use_every_verb() -> None:
    assert set(VERBS) - set(SHAPES) == {b"scan", b"flushall", b"flushdb"}


def test_replies_follow_the_clients_version_of_resp(pair: Pair) -> None:
    pair.raw.redis(b"HELLO", b"3")
    pair.view.resp = 3
    pair.all(b"SET a 1", b"GET b", b"MGET a b", b"SET a 2 NX", b"GETDEL zz", b"TYPE a")


def test_float_arithmetic_is_that_of_long_double(pair: Pair) -> None:
    source = random.Random(7)
    for _ in range(1500):
        digits, power = source.randrange(10 ** source.randint(1, 25)), source.randint(-30, 30)
        pair.both(b"INCRBYFLOAT", source.choice(KEYS), f"{source.choice(['', '-'])}{digits}e{power}".encode())
        if source.random() < 0.1:
            pair.both(b"DEL", *KEYS)


def test_no_string_grows_beyond_its_limit(pair: Pair) -> None:
    longest = 1 << 20  # the least that redis takes
    pair.raw.redis(b"CONFIG", b"SET", b"proto-max-bulk-len", b"%d" % longest)
    pair.kv.longest = longest
    pair.both(b"SET", b"a", b"x" * (longest - 2))
    assert pair.both(b"APPEND", b"a", b"yy") == b":%d\r\n" % longest
    refused = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
    assert pair.both(b"APPEND", b"a", b"z") == refused
    assert pair.both(b"SETRANGE", b"a", b"%d" % (longest - 1), b"zz") == refused
    assert pair.both(b"SETRANGE", b"none", b"%d" % longest, b"z") == refused
    pair.all(b"SETRANGE a %d z" % (longest - 1), b"STRLEN a", b"EXISTS none", b"GETRANGE a -3 -1")
    pair.raw.redis(b"CONFIG", b"SET", b"proto-max-bulk-len", b"%d" % LONGEST_BYTES)


def test_patterns_match_as_in_redis(pair: Pair) -> None:
    source = random.Random(11)
    for _ in range(60):
        pair.both(b"SET", bytes(source.choices(b"ab*[]-\\^?", k=source.randint(0, 5))), b"1")
    for _ in range(2000):
        pair.both(b"KEYS", bytes(source.choices(b"ab*?[]^-\\", k=source.randint(0, 7))))


def test_expired_keys_are_gone_for_every_verb(pair: Pair) -> None:
    for verb in (b"EXPIREAT", b"PEXPIREAT"):
        pair.all(b"SET a 1", verb + b" a 1", b"EXISTS a")
    pair.both(b"SET", b"a", b"5", b"PX", b"30")
    for ask in (pair.raw.redis, pair.ours):
        wait_for(lambda ask=ask: ask(b"EXISTS", b"a") == b":0\r\n", "the key expires")  # type: ignore[misc]
    pair.all(b"DBSIZE", b"KEYS *", b"TTL a", b"SET a 1 XX", b"INCR a", b"TTL a")


@pytest.mark.parametrize("line", [
    b"INCR a", b"APPEND a 5", b"SETRANGE a 0 7", b"INCRBYFLOAT a 1", b"SET a 1 KEEPTTL", b"GETSET a 1", b"SET a 1",
    b"PERSIST a", b"MSET a 1", b"GETEX a",
])  # fmt: skip
def test_expiry_survives_what_redis_lets_it_survive(pair: Pair, line: bytes) -> None:
    pair.all(b"SET a 3 EX 1000", line, b"TTL a")


def test_scan_walks_every_key_in_pages(pair: Pair) -> None:
    names = {b"key:%d" % number for number in range(95)}
    for name in names:
        pair.ours(b"SET", name, b"1")
    found: list[bytes] = []
    cursor, pages = b"0", 0
    while pages == 0 or cursor != b"0":
        reply = pair.ours(b"SCAN", cursor, b"MATCH", b"key:*", b"COUNT", b"10").split(b"\r\n")
        cursor, pages = reply[2], pages + 1
        found += reply[5::2]
    assert set(found) == names
    assert (len(found), pages) == (95, 10)


@pytest.mark.parametrize("line", [
    b"SCAN x", b"SCAN 0 COUNT", b"SCAN 0 COUNT 0", b"SCAN 0 COUNT x", b"SCAN 0 BOGUS 1", b"SCAN 0 TYPE list",
    b"SCAN 0 TYPE STRING", b"FLUSHALL bogus", b"FLUSHDB ASYNC", b"FLUSHALL sync x",
])  # fmt: skip
def test_rare_arguments_are_answered_as_in_redis(pair: Pair, line: bytes) -> None:
    pair.all(b"SET a 1", line, b"EXISTS a")


def test_a_cursor_beyond_all_keys_ends_the_walk(pair: Pair) -> None:
    pair.ours(b"SET", b"a", b"1")
    assert pair.ours(b"SCAN", b"18446744073709551615") == b"*2\r\n$1\r\n0\r\n*0\r\n"


def test_an_unserved_verb_is_told_what_is_served(pair: Pair) -> None:
    kind = pair.kv.kind.encode()
    expected = rb"-ERR 'lpush' is not served by an instance whose storage is %b \(it serves: APPEND .* UNLINK\)\r\n"
    assert re.fullmatch(expected % kind, pair.ours(b"LPUSH", b"a", b"1"))
