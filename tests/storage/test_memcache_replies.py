"""Replies of memcached are cut where they end, however they arrive; everything else is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.pieces import all_ways, trailing
from tests.kit.plain import both

MODULE = "hyper_proxy.storage.memcache_replies"

REPLIES = [
    b"END\r\n",
    b"VALUE k 0 0\r\n\r\nEND\r\n",
    b"VALUE k 4294967295 5 18446744073709551615\r\nEND\r\n\r\nEND\r\n",
    b"VALUE a 0 1\r\nx\r\nVALUE b\r 1 2 7\r\n\r\n\r\nEND\r\n",
    b"VALUE a 0 1\r\nx\r\nSERVER_ERROR out of memory writing get response\r\n",
    b"VA 0 W\r\n\r\n",
    b"VA 2 kkey O1\r\n\r\n\r\n",
    b"STAT pid 1\r\nSTAT empty \r\nEND\r\n",
    b"ITEM a [1 b; 0 s]\r\nITEM b [2 b; 0 s]\r\nEND\r\n", b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n",
    b"STORED\r\n", b"NOT_STORED\r\n", b"EXISTS\r\n", b"NOT_FOUND\r\n", b"DELETED\r\n", b"TOUCHED\r\n", b"OK\r\n",
    b"VERSION 1.6.18\r\n", b"ERROR\r\n", b"ERROR: shutdown not enabled\r\n", b"CLIENT_ERROR bad data chunk\r\n",
    b"SERVER_ERROR object too large for cache\r\n", b"RESET\r\n",
    b"0\r\n", b"18446744073709551615\r\n", b"5   \r\n",
    b"HD\r\n", b"HD c5 kkey\r\n", b"EN\r\n", b"EN kkey\r\n", b"NS\r\n", b"EX\r\n", b"NF\r\n", b"MN\r\n",
    b"ME key exp=-1 la=0 cas=3 fetch=no cls=1 size=63\r\n",
]  # fmt: skip

NONSENSE = [
    b"\r\n", b"\n", b"hello\r\n", b"-ERR\r\n", b"$3\r\nabc\r\n", b"HTTP/1.1 400 Bad Request\r\n", b"STORED\n",
    b"stored\r\n", b"STOREX\r\n", b"STAX pid 1\r\n", b"STAT\r\n", b"VALUE\r\n", b"VALUE k\r\n", b"VALUE k 0\r\n",
    b"VALUE k 0 x\r\n\r\n", b"VALUE  k 0 1\r\nx\r\n", b"VALUE k 0 1\r\nxy\r\n", b"VALUE k 0 1\r\nx\r\nSTORED\r\n",
    b"VALUE k 0 1\r\nx\r\nVA 1\r\nx\r\n", b"VALUE k 0 99999999999\r\n", b"VALUE k 0 -1\r\n", b"VA\r\n", b"VA x\r\n",
    b"VA 1\r\nxyz", b"12x\r\n", b"1 2\r\n", b"STAT a 1\r\nVALUE k 0 1\r\nx\r\n", b"STAT a 1\r\nSTORED\r\n",
    b"X" * 3000, b"\x80\x00",
]  # fmt: skip


def cut(parser: object, pieces: list[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield from parser.feed(piece)  # type: ignore[attr-defined]


@both(MODULE)
@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_is_one_reply_however_it_arrives(module: ModuleType, reply: bytes) -> None:
    for pieces in all_ways(reply):
        assert list(cut(module.MemcacheParser(), pieces)) == [reply]


@both(MODULE)
def test_all_replies_in_one_stream_however_it_is_split(module: ModuleType) -> None:
    for pieces in all_ways(b"".join(REPLIES)):
        assert list(cut(module.MemcacheParser(), pieces)) == REPLIES


@both(MODULE)
@pytest.mark.parametrize("reply", REPLIES)
def test_the_beginning_of_the_next_reply_waits(module: ModuleType, reply: bytes) -> None:
    for data in trailing(reply, b"VALUE key 0 3\r\nabc\r\nEND\r\n"):
        assert list(cut(module.MemcacheParser(), [data])) == [reply]


@both(MODULE)
@pytest.mark.parametrize("data", NONSENSE)
def test_what_is_no_reply_is_refused_however_it_arrives(module: ModuleType, data: bytes) -> None:
    for pieces in all_ways(data) if len(data) < 100 else [[data]]:
        with pytest.raises(module.ReplyError):
            list(cut(module.MemcacheParser(), pieces))


@both(MODULE)
def test_a_large_value_is_looked_at_once(module: ModuleType) -> None:
    reply = b"VALUE k 0 1000000\r\n%b\r\nEND\r\n" % (b"VALUE x\r\n" * 111111 + b"y")
    parser = module.MemcacheParser()
    pieces = [reply[i : i + 1000] for i in range(0, len(reply), 1000)]
    assert list(cut(parser, pieces)) == [reply]


@both(MODULE)
@settings(deadline=None)
@given(replies=st.lists(st.sampled_from(REPLIES), max_size=8), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_any_replies_in_any_packets(module: ModuleType, replies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(replies)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges) if a < b]
    assert list(cut(module.MemcacheParser(), pieces)) == replies
