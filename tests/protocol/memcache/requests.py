"""Memcache requests of every kind, good and odd, and the events that a framer finds in a stream of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any

from hyper_proxy.protocol.memcache.command import LOCAL

LONG = b"k" * 251
LINE = b"s " * 30

COMMANDS = [
    b"\r\n", b"\n", b" \r\n", b"\r\r\n", b"\0\r\n", b"x\r\n", b"bogus\0\r\n", b"SET k 0 0 1\r\nx\r\n", b"get k\r\r\n",
    b"get\r\n", b"get \r\n", b"get k\r\n", b"get k\n", b"   get  k  \r\n", b"get a\0b\r\n", b"get " + LONG + b"\r\n",
    b"get a " + LONG + b" b\r\n", b"get a b a c\r\n", b"gets a b\r\n", b"bget k\r\n", b"bget a b\r\n", b"getx k\r\n",
    b"get" + b" " * 3000 + b"k\r\n", b"get " + b"kkkkk " * 3000 + b"\r\n", b"gat\r\n", b"gat 10\r\n", b"gat x\r\n",
    b"gat x a\r\n", b"gat 10 a\r\n", b"gat 10 a b a\r\n", b"gats 0 a b\r\n", b"gat 10 " + LONG + b"\r\n",
    b"gat x " + LONG + b"\r\n", b"gat 4294967296 a\r\n", b"gat +1 a\r\n", b"set k 0 0 1\r\nx\r\n",
    b"set k 0 0 0\r\n\r\n", b"set k 0 0 1\nx\r\n", b"set k 0 0 -1\r\n", b"set k 0 0 -1\r\nabc\r\n",
    b"set k 0 0 3\r\nabcdef\r\n", b"set k 0 0 2\r\nabcdef\r\n", b"set k 0 0 1 noreply\r\nxx\r\n",
    b"set k 0 0 2\r\n\r\n\r\n", b"set k 0 0 1048577\r\n" + b"x" * 1048577 + b"\r\n",
    b"set k 0 0 1048577 noreply\r\n" + b"x" * 1048577 + b"\r\n", b"set k 0 0 2147483647\r\n",
    b"set k 0 0 2147483646\r\n", b"set k 0 0 4294967297\r\nx\r\n", b"set k 0 0 99999999999999999999\r\n",
    b"set k 4294967295 0 1\r\nx\r\n", b"set k 4294967296 0 1\r\nx\r\n", b"set k -1 0 1\r\nx\r\n",
    b"set k 18446744073709551615 0 1\r\nx\r\n", b"set k 18446744073709551616 0 1\r\nx\r\n",
    b"set k 9223372036854775808 0 1\r\nx\r\n", b"set k -18446744073709551615 0 1\r\nx\r\n", b"set k +1 0 1\r\nx\r\n",
    b"set k 1\t 0 1\r\nx\r\n", b"set k \t1 0 1\r\nx\r\n", b"set k 1\tx 0 1\r\nx\r\n", b"set k 1x 0 1\r\nx\r\n",
    b"set k 0 2147483648 1\r\nx\r\n", b"set k 0 4294967296 1\r\nx\r\n", b"set k 0 9223372036854775808 1\r\nx\r\n",
    b"set k 0 -2147483649 1\r\nx\r\n", b"set k 0 -1 1\r\nx\r\n", b"set k 0 0 1 foo\r\nx\r\n",
    b"set k 0 0 1 foo bar\r\nx\r\n", b"set k 007 00 0001\r\nx\r\n", b"set k 0 0 noreply\r\nx\r\n",
    b"set k 0 0 a noreply\r\nx\r\n", b"set k 0 0 1\0 x\r\nx\r\n", b"set " + LONG + b" 0 0 1 noreply\r\nx\r\n",
    b"set " + LONG + b" 0 0 1\r\nx\r\n", b"set\tk 0 0 1\r\nx\r\n", b"set k" + b" " * 2500 + b"0 0 1\r\nx\r\n",
    b"set k 0 0 1\r\nx\r\nappend k 9 9 2\r\nyy\r\nprepend k 0 0 1 noreply\r\nz\r\n", b"add k 0 0 1\r\ny\r\n",
    b"replace k 1 0 1\r\nz\r\n", b"add k 0 0 1 noreply\r\ny\r\n", b"cas k 0 0 1 x\r\nx\r\n", b"cas k 0 0 1\r\nx\r\n",
    b"cas k 0 0 1 -1\r\nx\r\n", b"cas k 0 0 1 18446744073709551616\r\nx\r\n",
    b"cas k 0 0 1 18446744073709551615\r\nx\r\n", b"cas k 0 0 1 5 noreply\r\nx\r\n", b"cas k 0 0 1 noreply\r\nx\r\n",
    b"cas none 0 0 1 5\r\nx\r\n", b"cas k 0 0 1 +5 foo\r\nx\r\n", b"delete\r\n", b"delete k 0\r\n", b"delete k 1\r\n",
    b"delete k 0 noreply\r\n", b"delete k noreply\r\n", b"delete k 0 1\r\n", b"delete k 1 noreply\r\n",
    b"delete k noreply noreply\r\n", b"delete noreply\r\n", b"delete k 0 noreply x\r\n", b"delete " + LONG + b"\r\n",
    b"delete " + LONG + b" 1\r\n", b"delete " + b"k" * 1990 + b"\r\n", b"incr k\r\n", b"incr k x\r\n",
    b"incr k -1\r\n", b"incr k noreply\r\n", b"incr k 1 2\r\n", b"incr k noreply noreply\r\n",
    b"set k 0 0 2\r\n10\r\n", b"incr k 5\r\n", b"decr k 6\r\n", b"decr k 99 noreply\r\n", b"incr k +3\r\n",
    b"incr k 003\r\n", b"incr none 1 noreply\r\n", b"incr k 18446744073709551615\r\n",
    b"incr k 18446744073709551616\r\n", b"incr k 1\0 noreply\r\n", b"set k 0 0 1\r\nx\r\nincr k 1\r\n",
    b"incr " + LONG + b" x\r\n", b"incr k noreply 1\r\n", b"touch k\r\n", b"touch k x\r\n", b"touch k 10\r\n",
    b"touch k noreply\r\n", b"touch k 1 2 3\r\n", b"touch none 5\r\n", b"touch  k  10  noreply\r\n",
    b"touch k +10\r\n", b"touch k noreply noreply\r\n", b"verbosity\r\n", b"verbosity 0\r\n", b"verbosity x\r\n",
    b"verbosity 0 0\r\n", b"verbosity noreply\r\n", b"verbosity 0 noreply\r\n", b"verbosity x noreply\r\n",
    b"verbosity 0 0 0\r\n", b"stats foo\r\n", b"stats noreply\r\n", b"stats cachedump\r\n",
    b"stats cachedump x 1\r\n", b"stats cachedump 64 1\r\n", b"stats cachedump 63 1\r\n", b"cache_memlimit\r\n",
    b"cache_memlimit x\r\n", b"cache_memlimit 64\r\n", b"cache_memlimit 64 noreply\r\n", b"cache_memlimit 5\r\n",
    b"cache_memlimit 64 x\r\n", b"cache_memlimit 64 x y\r\n", b"cache_memlimit 1000000001\r\n", b"flush_all x\r\n",
    b"mn \0" + b"x" * 3000 + b"\r\n",
    b"flush_all 1 2 3\r\n", b"flush_all 0 noreply\r\n", b"flush_all noreply\r\n", b"flush_all x noreply\r\n",
    b"flush_all 0 2\r\n", b"flush_all\r\n",
]  # fmt: skip
"""Lines of the classic commands, many of them wrong, to be sent one after the other."""

META = [
    b"mg\r\n", b"mg k\r\n", b"mg k q\r\n", b"mg k v q\r\n", b"mg k k O1\r\n", b"mg k k O1 q\r\n", b"mg k q q\r\n",
    b"mg k ! q q\r\n", b"mg k q ! q\r\n", b"mg k v v q q\r\n", b"mg k !\r\n", b"mg k ! q\r\n", b"mg k v v\r\n",
    b"mg k \xff q q\r\n", b"mg " + LONG + b"\r\n", b"mg " + LONG + b" q\r\n", b"mg k O" + b"1" * 40 + b"\r\n",
    b"mg k " + LINE + b"\r\n", b"mg Zm9v b v k\r\n", b"mg %%% b\r\n", b"mg Zm9 b k\r\n", b"mg = b\r\n",
    b"mg Zm9v b b\r\n", b"mg Zm9v v b q\r\n", b"me\r\n", b"me none\r\n", b"me none q\r\n", b"me " + LONG + b"\r\n",
    b"me %% b\r\n", b"ms\r\n", b"ms k\r\n", b"ms k x\r\n", b"ms k x\r\nab\r\n", b"ms k -1\r\n", b"ms k 2\r\nab\r\n",
    b"ms k 2 q\r\nab\r\n", b"ms k 2 q q\r\nab\r\n", b"ms k 2 ! q q\r\nab\r\n", b"ms k 2 !\r\nab\r\n",
    b"ms k 2 !\r\nabc\r\n", b"ms k 2\r\nabc\r\n", b"ms k 2 q\r\nabc\r\n", b"ms k S2\r\nab\r\n",
    b"ms k 2 MX\r\nab\r\n", b"ms k 2 Mset\r\nab\r\n", b"ms k +2 q\r\nab\r\n", b"ms k 2 O" + b"1" * 40 + b"\r\nab\r\n",
    b"ms k 2 ME q\r\nab\r\n", b"ms " + LONG + b" 2\r\nab\r\n", b"ms Zm9v 2 b k\r\nab\r\n", b"ms %% 2 b\r\nab\r\n",
    b"ms k 2 F-1\r\nab\r\n", b"ms k 2 Fx\r\nab\r\n", b"ms k 2 Tx\r\nab\r\n", b"ms k 2 C1\r\nab\r\n",
    b"ms k 2 C1 q\r\nab\r\n", b"ms none 2 C1 q\r\nab\r\n", b"ms none 2 MR q\r\nab\r\n",
    b"ms k 1048577\r\n" + b"x" * 1048577 + b"\r\n", b"ms k 1048577 q\r\n" + b"x" * 1048577 + b"\r\n",
    b"ms k 2 " + LINE + b"\r\nab\r\n", b"ms k 4294967298\r\nab\r\n", b"ms k 2 b b\r\nab\r\n", b"ms k 2 I\r\nab\r\n",
    b"ms foo 1\r\nx\r\n", b"get foo\r\n", b"mg Zm9v b v k q\r\n", b"md Zm9v b q\r\n", b"get foo\r\n", b"md\r\n",
    b"md k\r\n", b"md k q\r\n", b"ms k 1\r\nx\r\nmd k q\r\n", b"md k q q\r\n", b"md k !\r\n", b"md k C1 q\r\n",
    b"ms k 1\r\nx\r\nmd k C1 q\r\n", b"md k O1 k\r\n", b"md " + LONG + b"\r\n", b"md k " + LINE + b"\r\n",
    b"ms k 1\r\nx\r\nmd k I q\r\n", b"ma\r\n", b"ma none\r\n", b"ma none q\r\n", b"ms n 1\r\n5\r\nma n q\r\n",
    b"ma n v q\r\n", b"ma n v\r\n", b"ma n v k O1 t\r\n", b"ma n MX\r\n", b"ma n q q\r\n", b"ma n Dx\r\n",
    b"ma new N0 v\r\n", b"ma k q\r\n", b"ms k 1\r\nx\r\nma k q\r\n", b"ms k 1\r\nx\r\nma k v\r\n", b"ma n C1 q\r\n",
    b"mg n qfoo\r\n", b"mg none qfoo\r\n", b"mg n \x80\r\n", b"mg n q v k\r\n", b"mg n q\r\n", b"mg none P q\r\n",
    b"mg n N0 v q\r\n", b"mg vivid N30 v q\r\n", b"mg n b\r\n", b"mx\r\n", b"mg k S\r\n", b"mg k E1\r\n",
    b"mg k x\r\n", b"mg k" + b" " * 2500 + b"v q\r\n",
]  # fmt: skip
"""Lines of the meta commands."""


def events(
    framing: ModuleType, pieces: Sequence[bytes], max_value: int = 1 << 20, max_line: int = 1 << 20
) -> Iterator[Any]:
    """What a framer finds in a stream that comes in these pieces, as plain tuples."""
    framer = framing.Framer(250, max_value, max_line)
    buf, start, need, swallow = b"", 0, 0, 0
    for piece in pieces:
        # Now and then with what came before still in front, as in a session whose batch was full.
        buf, start = (buf + piece, start) if len(piece) % 2 else (buf[start:] + piece, 0)
        if len(buf) - start < need:
            continue
        need = 0
        while start < len(buf):
            if swallow:
                step = min(swallow, len(buf) - start)
                start, swallow = start + step, swallow - step
                continue
            try:
                end = framer.scan(buf, start)
            except framing.ClientError as error:
                yield str(error)
                return
            if end < 0:
                need = framer.need
                break
            swallow = framer.swallow
            yield event(framer, buf, start, end)
            start = end


def event(framer: Any, buf: bytes, start: int, end: int) -> Any:
    """The request that a framer has just found."""
    name = framer.command.name
    if framer.error is not None:
        return (name, framer.error, framer.noreply, framer.swallow, framer.stale)
    key = buf[framer.key_start : framer.key_end] if framer.command.form < LOCAL else b""
    rest = buf[framer.key_start : framer.text_end] if framer.several else None
    sent = framer.request(buf, start, end)
    return (name, key, rest, sent, framer.noreply, framer.quiet, framer.encoded)


_WORDS = [
    b"get", b"gets", b"gat", b"set", b"cas", b"delete", b"incr", b"touch", b"mg", b"ms", b"md", b"ma", b"me", b"mn",
    b"quit", b"flush_all", b"noreply", b"0", b"1", b"2", b"3", b"10", b"-1", b"+1", b"4294967297",
    b"99999999999999999999", b"k", b"key", b"q", b"b", b"v", b"O1", b"\0", b"\r", b"\t", b"Zm9v", LONG, b"\xff\xfe",
    b"a\0b", b"k" * 900,
]  # fmt: skip
_STORES = [b"set k 0 0 %d", b"set k 1 2 %d noreply", b"cas k 0 0 %d 7", b"ms k %d q", b"ms k %d"]
_SPACES = [b" ", b" ", b" ", b" ", b"  ", b"", b" " * 800]
_ENDS = [b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"\r\r\n", b"\0\r\n", b""]
_BLOCKS = [b"", b"", b"x\r\n", b"ab\r\n", b"abc\r\n", b"abcd", b"\r\n", b"\r\n\r\n", b"get k\r\n"]


def random_stream(source: random.Random) -> bytes:
    """A few requests made of pieces that mean something, in an order that mostly does not."""
    out = []
    for _ in range(source.randint(1, 3)):
        if source.random() < 0.5:
            words = [source.choice(_WORDS[:16])]
            words += [source.choice(_WORDS[16:]) for _ in range(source.randint(0, 6))]
            out += [word + source.choice(_SPACES[:5]) for word in words]
        else:
            size = source.randint(0, 4)
            out += [source.choice(_STORES) % size, b"\r\n", source.randbytes(source.choice([size, size, size + 1]))]
        out += [source.choice(_ENDS), source.choice(_BLOCKS)]
    stream = bytearray(b"".join(out))
    if stream and source.random() < 0.3:
        stream[source.randrange(len(stream))] = source.randrange(256)
    return bytes(stream)


def random_pieces(source: random.Random, stream: bytes) -> list[bytes]:
    """The stream cut at random."""
    edges = sorted({0, len(stream), *(source.randint(0, len(stream)) for _ in range(source.randint(0, 3)))})
    return [stream[a:b] for a, b in pairwise(edges)]
