"""Random bytes for every parser: compiled and plain code must find the same, however the bytes are cut.

A case is a number: it seeds the choice of valid messages, what is damaged in them, and where they are cut; so a case
that fails can be run again. TARGETS has one row for each parser.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

from tests.kit.plain import plain
from tests.kit.streams import Event, memcache_requests, replies, requests

Find = Callable[[ModuleType, Sequence[bytes]], list[Event]]

REDIS_REQUESTS = [
    b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\n\r\n\r\n",
    b"*4\r\n$4\r\nMGET\r\n$1\r\na\r\n$10\r\n0123456789\r\n$1\r\nb\r\n", b"*0\r\n", b"*-1\r\n", b"PING\r\n",
    b"get a b\n", b'set "a b" \'c\' "\\x41\\n"\r\n', b"\r\n", b"*2\r\n$4\r\nECHO\r\n$12\r\n*1\r\n$1\r\n*\r\n\r\n",
]  # fmt: skip
REDIS_REPLIES = [
    b"+OK\r\n", b"-ERR x\r\n", b":12\r\n", b"$-1\r\n", b"$0\r\n\r\n", b"$11\r\nhello\r\n$1\r\n\r\n", b"*-1\r\n",
    b"*0\r\n", b"*3\r\n$1\r\na\r\n$-1\r\n:1\r\n", b"*2\r\n*1\r\n*0\r\n+a\r\n", b"%1\r\n+a\r\n*1\r\n_\r\n",
    b"~1\r\n#t\r\n", b">2\r\n+message\r\n$1\r\na\r\n", b"|1\r\n+a\r\n+b\r\n,1.5\r\n", b"(123456789012345678901\r\n",
    b"=5\r\ntxt:a\r\n", b"!3\r\nERR\r\n",
]  # fmt: skip
MEMCACHE_REQUESTS = [
    b"get a\r\n", b"gets a b c\n", b"set k 0 0 5\r\nhello\r\n", b"set k 1 2 3 noreply\r\nabc\r\n",
    b"cas k 0 0 1 99\r\nx\r\n", b"delete k\r\n", b"incr k 1 noreply\r\n", b"touch k 10\r\n", b"gat 10 a b\r\n",
    b"mg k v t q\r\n", b"ms k 3 T0\r\nabc\r\n", b"mn\r\n", b"ma k N0\r\n", b"md k q\r\n", b"version\r\n",
    b"verbosity 1\r\n", b"append k 0 0 0\r\n\r\n", b"\r\n", b"nosuch\r\n",
]  # fmt: skip
MEMCACHE_REPLIES = [
    b"STORED\r\n", b"END\r\n", b"VALUE k 0 5\r\nhello\r\nEND\r\n",
    b"VALUE a 1 2 99\r\n\r\n\r\nVALUE b 0 0\r\n\r\nEND\r\n", b"12\r\n", b"ERROR\r\n", b"CLIENT_ERROR bad\r\n",
    b"SERVER_ERROR x\r\n", b"STAT pid 1\r\nSTAT x y\r\nEND\r\n", b"HD\r\n", b"EN\r\n", b"MN\r\n",
    b"VA 5 f0\r\nhello\r\n", b"NS\r\n", b"VERSION 1.6.18\r\n", b"OK\r\n", b"ME k exp=1\r\n",
]  # fmt: skip

TOKENS = [
    b"\r\n", b"\r", b"\n", b"\0", b"*", b"$", b"-1", b"0", b"00", b"1", b"9", b"99999999999", b"4294967296",
    b"2147483648", b"-", b" ", b"'", b'"', b"\\", b"+", b":", b"%", b"|", b">", b"_", b"END\r\n", b"VALUE ",
    b"noreply", b"$1\r\na\r\n", b"\xff", b"A" * 40,
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A parser: the module it lives in, messages it knows, and what it makes of pieces of bytes."""

    module: str
    messages: list[bytes]
    find: Find
    keeps: bool  # what was found before an error, in the same piece, counts


def _redis_requests(module: ModuleType, pieces: Sequence[bytes]) -> list[Event]:
    return requests(module, pieces, max_arguments=1000, max_bulk=10_000, max_line=200)


def _redis_replies(module: ModuleType, pieces: Sequence[bytes]) -> list[Event]:
    return replies(module.RespParser(), pieces)


def _memcache_requests(module: ModuleType, pieces: Sequence[bytes]) -> list[Event]:
    return memcache_requests(module, pieces, 250, 10_000, 2048)


def _memcache_replies(module: ModuleType, pieces: Sequence[bytes]) -> list[Event]:
    return replies(module.MemcacheParser(), pieces)


TARGETS: dict[str, Target] = {
    "redis-requests": Target("hyper_proxy.protocol.redis.framing", REDIS_REQUESTS, _redis_requests, True),
    "redis-replies": Target("hyper_proxy.storage.resp", REDIS_REPLIES, _redis_replies, False),
    "memcache-requests": Target("hyper_proxy.protocol.memcache.framing", MEMCACHE_REQUESTS, _memcache_requests, True),
    "memcache-replies": Target("hyper_proxy.storage.memcache_replies", MEMCACHE_REPLIES, _memcache_replies, False),
}


def damage(data: bytearray, rng: random.Random) -> None:
    """One small change."""
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(7)
    if kind == 0 and at < len(data):
        data[at] = rng.randrange(256)
    elif kind == 1:
        del data[at : at + rng.randrange(1, 8)]
    elif kind == 2:
        data[at:at] = rng.choice(TOKENS)
    elif kind == 3:
        data[at:at] = data[rng.randrange(len(data) + 1) :][: rng.randrange(1, 30)]
    elif kind == 4:
        data[at : at + rng.randrange(1, 4)] = rng.choice(TOKENS)
    elif kind == 5:
        del data[at:]
    else:
        data[at:at] = rng.randbytes(rng.randrange(1, 6))


def stream(target: Target, rng: random.Random) -> bytes:
    """Valid messages; most of the time with damages; now and then nothing but noise."""
    if rng.random() < 0.03:
        return rng.randbytes(rng.randrange(1, 80))
    data = bytearray(b"".join(rng.choices(target.messages, k=rng.randrange(1, 6))))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3, 6))):
        damage(data, rng)
    return bytes(data) or b"\n"


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    """In pieces."""
    if rng.random() < 0.2:
        return [data[i : i + 1] for i in range(len(data))]
    places = sorted({0, *rng.choices(range(len(data) + 1), k=rng.randrange(1, 6)), len(data)})
    return [data[start:end] for start, end in pairwise(places)]


class Fuzzer:
    """Runs cases of one target; `found` counts the kinds of events."""

    def __init__(self, name: str) -> None:
        self.target = TARGETS[name]
        self.built = importlib.import_module(self.target.module)
        self.plain = plain(self.target.module)
        self.found: dict[str, int] = {}

    def run(self, case: int) -> None:
        """AssertionError with everything that is needed to see why, when the four runs differ."""
        rng = random.Random(case)
        data = stream(self.target, rng)
        pieces = cut(data, rng)
        find = self.target.find
        whole = find(self.built, [data])
        assert find(self.plain, [data]) == whole, (case, data)
        parted = find(self.built, pieces)
        assert find(self.plain, pieces) == parted, (case, pieces)
        assert self.same(whole, parted), (case, pieces, whole, parted)
        for event in whole:
            self.found[event[0]] = self.found.get(event[0], 0) + 1

    def same(self, whole: list[Event], parted: list[Event]) -> bool:
        """The same in one piece and in many?

        A server's replies that come together with nonsense are dropped with it, and how much of the nonsense is seen at
        once decides what is said about it.
        """
        if self.target.keeps or whole[-1][0] != "error":
            return whole == parted
        return parted[-1][0] == "error" and parted[: len(whole) - 1] == whole[:-1]


def run(name: str, first: int, count: int) -> dict[str, int]:
    """`count` cases; how many events of each kind were found."""
    fuzzer = Fuzzer(name)
    for case in range(first, first + count):
        fuzzer.run(case)
    return fuzzer.found


def events_of(found: dict[str, int]) -> str:
    """For people."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(found.items()))
