"""Random memcache requests for the verbs that a key-value storage serves, many of them wrong."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from dataclasses import dataclass

KEYS = [b"a", b"b", b"c", b"key:4"]
LONG_KEY = b"k" * 251
VALUES = [b"", b"0", b"1", b"9", b"10", b"100", b"18446744073709551615", b"18446744073709551616", b"-5", b"+7", b" 12 ",
          b"5\0a", b"007", b"text", b"12x", b"\x00\xff", b"-18446744073709551615"]  # fmt: skip
FLAGS = b"0 0 5 4294967295 4294967296 -1 x 18446744073709551615".split()
# Never, long lives, over at once, absolute; nothing that could end between two calls.
EXPTIMES = b"0 0 1000 2592000 -1 2592001 1000000000 2000000000 99999999999 x 1x".split()
DELTAS = b"0 1 1 5 90 18446744073709551615 18446744073709551616 -1 x 1x +3".split()
VERSIONS = b"0 99999 x 18446744073709551616".split()
LIVES = b"0 30 1000 x".split()

# Flags of meta commands, without those that ours refuses (N, R, h, l of mg, I of ms and md) and those with which
# memcached has faults that ours has not: after a too long opaque token ma still counts, T of ma is lost if the number
# grows.
TOKENS: dict[bytes, list[bytes]] = {
    b"T": LIVES, b"F": FLAGS, b"C": VERSIONS, b"D": DELTAS, b"J": DELTAS, b"N": LIVES, b"O": [b"", b"1", b"z" * 31],
    b"M": [b"I", b"D", b"+", b"-", b"E", b"A", b"P", b"R", b"S", b"x", b"", b"ab"],
}  # fmt: skip
META = {b"mg": b"ckfqstuvOTPLDM!", b"ms": b"ckqTFCMOstvLN", b"md": b"kqCOcvL?", b"ma": b"ctkqvNJDMCOf"}


@dataclass(frozen=True, slots=True)
class Request:
    """The words of the command line, and the data block when it has one."""

    words: list[bytes]
    value: bytes | None = None

    def encode(self) -> bytes:
        data = b"" if self.value is None else self.value + b"\r\n"
        return b" ".join(self.words) + b"\r\n" + data


class Generator:
    """An endless sequence of requests that depends on the seed only."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def request(self) -> Request:
        return self.random.choice(SHAPES)(self)

    def pick(self, pool: list[bytes]) -> bytes:
        return self.random.choice(pool)

    def key(self) -> bytes:
        return LONG_KEY if self.random.random() < 0.01 else self.random.choice(KEYS)

    def keys(self) -> list[bytes]:
        return [self.key() for _ in range(self.random.randint(1, 4))]

    def quiet(self) -> list[bytes]:
        return [b"noreply"] if self.random.random() < 0.1 else []

    def store(self, verb: bytes, more: list[bytes]) -> Request:
        value = self.pick(VALUES)
        words = [verb, self.key(), self.pick(FLAGS), self.pick(EXPTIMES), b"%d" % len(value), *more, *self.quiet()]
        return Request(words, value)

    def flags(self, verb: bytes) -> list[bytes]:
        names = [b"%c" % code for code in self.random.choices(META[verb], k=self.random.choice([0, 1, 2, 2, 3, 4]))]
        if self.random.random() < 0.9:
            names = list(dict.fromkeys(names))
        return [name + (self.pick(TOKENS[name]) if name in TOKENS else b"") for name in names]

    def meta(self, verb: bytes) -> Request:
        key, flags = self.key(), self.flags(verb)
        value = self.pick(VALUES) if verb == b"ms" else None
        return Request([verb, key, *([] if value is None else [b"%d" % len(value)]), *flags], value)

    def binary(self) -> Request:
        """A key in base64, of keys that no other request uses."""
        key = base64.b64encode(b"\0 binary " + self.pick(KEYS)) if self.random.random() < 0.9 else b"?"
        if self.random.random() < 0.5:
            return Request([b"ms", key, b"2", b"b", b"k", b"T100"], b"77")
        verb = self.pick([b"mg", b"md", b"ma"])
        return Request([verb, key, b"k", b"b", *([] if verb == b"md" else [b"v"])])


def _delete(g: Generator) -> Request:
    tail = g.random.choice([[], [], [], [b"0"], [b"1"], [b"0", b"noreply"], [b"x", b"y"], [b"noreply"]])
    return Request([b"delete", g.key(), *tail])


SHAPES: list[Callable[[Generator], Request]] = [
    lambda g: Request([g.pick([b"get", b"bget"]), *g.keys()]),
    # No key that is too long: memcached touches those before it all the same.
    lambda g: Request([b"gat", g.pick(EXPTIMES), *g.random.choices(KEYS, k=g.random.randint(0, 4))]),
    *([lambda g: g.store(g.pick(b"set set add replace append prepend".split()), [])] * 3),
    lambda g: g.store(b"cas", [g.pick(VERSIONS)]),
    lambda g: Request([g.pick([b"incr", b"decr"]), g.key(), g.pick(DELTAS), *g.quiet()]),
    lambda g: Request([b"touch", g.key(), g.pick(EXPTIMES), *g.quiet()]),
    _delete,
    *([lambda g: g.meta(g.pick([b"mg", b"ms", b"md", b"ma"]))] * 4),
    lambda g: g.binary(),
]
