"""Random redis requests for the verbs that a key-value storage serves, many of them wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

KEYS = [b"a", b"b", b"c", b"d"]
FAR_MS = 4_102_444_800_000  # the year 2100
PAST_MS = 1_000_000_000_000  # the year 2001

INTEGERS = b"0 1 -1 5 -7 10 9223372036854775807 -9223372036854775808 9223372036854775806".split()
BAD_INTEGERS = [b"", b" 1", b"1 ", *b"x 1.5 01 +1 -0 9223372036854775808 0x10".split()]
FLOATS = (b"0.1 3.0e3 -2.5 .5 5. 1e-17 1e300 -1e300 123456789.123456789 1e4900 inf -Infinity 4e-4000 "
          b"100000000000000000000 +7 -0 0x1.8p3 -0XAp-2 0x.1 0x1.").split()
BAD_FLOATS = [b"", b" 1", b"1 ", *b"nan 1e . --1 1e5000 1e-5000 e5 0x 0x1p 0xg 1_0 1e99999999999999999999".split()]
TEXTS = [b"", b"x", b"hello world", b"\x00\r\n\xff", b"v" * 100]
# Lengths of life that cannot end between two calls, or that are wrong or over at once.
LIVES = b"1000000 5000000 0 -1 abc 9223372036854775807 -9223372036854776".split()
# Times beyond the year 280000 are left out: they are kept rounded, since a float cannot hold their milliseconds.
BAD_MOMENTS = b"0 -1 abc".split()
OFFSETS = b"0 1 5 -1 600000000 x 9223372036854775807".split()
PATTERNS = [b"", *b"* ? [ab] [^a] a* \\a [a-c] [c-a] [a".split()]
SET_WORDS = b"NX xx GET KEEPTTL PERSIST bogus".split()
GETEX_WORDS = b"PERSIST KEEPTTL persist NX".split()
EXPIRE_WORDS = b"NX xx GT lt bogus".split()
TIMES = [(b"EX", 1000, False), (b"px", 1, False), (b"EXAT", 1000, True), (b"PXAT", 1, True)]

Shape = Callable[["Generator"], list[bytes]]


class Generator:
    """An endless sequence of requests that depends on the seed only."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self) -> list[bytes]:
        """The words of one request, of which the number may be wrong for the verb."""
        verb = self.random.choice(VERBS)
        return [verb.upper() if self.random.random() < 0.5 else verb, *SHAPES[verb](self)]

    def pick(self, *pools: list[bytes]) -> bytes:
        return self.random.choice(self.random.choice(pools))

    def some(self, pool: list[bytes], most: int) -> list[bytes]:
        return [self.random.choice(pool) for _ in range(self.random.randint(0, most))]

    def key(self) -> bytes:
        return self.random.choice(KEYS)

    def value(self) -> bytes:
        return self.pick(INTEGERS, BAD_INTEGERS, FLOATS, BAD_FLOATS, TEXTS)

    def integer(self) -> bytes:
        return self.pick(INTEGERS, INTEGERS, BAD_INTEGERS)

    def moment(self, unit_ms: int, absolute: bool) -> bytes:
        if absolute:
            return self.pick([b"%d" % (PAST_MS // unit_ms), b"%d" % (FAR_MS // unit_ms)], BAD_MOMENTS)
        return self.random.choice(LIVES)

    def options(self, words: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            if self.random.random() < 0.5:
                found.append(self.random.choice(words))
            else:
                word, unit_ms, absolute = self.random.choice(TIMES)
                found += [word, self.moment(unit_ms, absolute)]
        return found[:-1] if found and self.random.random() < 0.05 else found

    def pairs(self) -> list[bytes]:
        words = [word for _ in range(self.random.randint(1, 4)) for word in (self.key(), self.value())]
        return words[:-1] if self.random.random() < 0.1 else words


def _expire(unit_ms: int, absolute: bool) -> Shape:
    return lambda g: [g.key(), g.moment(unit_ms, absolute), *g.some(EXPIRE_WORDS, 2)]


_ROWS: list[tuple[str, Shape]] = [
    ("get getdel incr decr strlen type ttl pttl expiretime pexpiretime persist", lambda g: [g.key()]),
    ("mget del unlink exists touch", lambda g: [g.key(), *g.some(KEYS, 4)]),
    ("mset msetnx", lambda g: g.pairs()),
    ("setnx getset append", lambda g: [g.key(), g.value()]),
    ("set", lambda g: [g.key(), g.value(), *g.options(SET_WORDS)]),
    ("getex", lambda g: [g.key(), *g.options(GETEX_WORDS)]),
    ("setex psetex", lambda g: [g.key(), g.moment(1, False), g.value()]),
    ("incrby decrby", lambda g: [g.key(), g.integer()]),
    ("incrbyfloat", lambda g: [g.key(), g.pick(FLOATS, FLOATS, BAD_FLOATS, INTEGERS)]),
    ("getrange substr", lambda g: [g.key(), g.integer(), g.integer()]),
    ("setrange", lambda g: [g.key(), g.pick(OFFSETS), g.value()]),
    ("expire", _expire(1000, False)),
    ("pexpire", _expire(1, False)),
    ("expireat", _expire(1000, True)),
    ("pexpireat", _expire(1, True)),
    ("keys", lambda g: [g.pick(PATTERNS)]),
    ("dbsize", lambda g: []),
]
SHAPES: dict[bytes, Shape] = {name.encode(): shape for names, shape in _ROWS for name in names.split()}
VERBS = sorted(SHAPES)
