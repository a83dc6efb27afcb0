"""SCAN's cursor with the shard in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.protocol.redis import scan
from hyper_proxy.protocol.redis.scan import BadCursor, Page, Place
from hyper_proxy.storage.redis_reply import parse
from tests.protocol.raw import Raw


@given(st.integers(1, 1000), st.data())
def test_a_place_survives_the_way_through_the_client(shards: int, data: st.DataObject) -> None:
    shard = data.draw(st.integers(0, shards - 1))
    place = Place(shard, data.draw(st.integers(0, (scan.CURSOR_LIMIT - 1 - shard) // shards)))
    assert scan.decode(scan.encode(place, shards), shards) == place


@given(st.integers(2, 1000), st.data())
def test_a_cursor_that_leaves_no_room_is_never_given_out(shards: int, data: st.DataObject) -> None:
    cursor = data.draw(st.integers(scan.CURSOR_LIMIT // shards + 1, scan.CURSOR_LIMIT - 1))
    with pytest.raises(BadCursor):
        scan.encode(Place(0, cursor), shards)


def test_shards_follow_one_another_and_only_the_last_ends_the_scan() -> None:
    assert scan.following(Place(0, 0), 17, 3) == Place(0, 17)
    assert scan.following(Place(0, 17), 0, 3) == Place(1, 0)
    assert scan.following(Place(2, 5), 0, 3) is None
    assert scan.encode(None, 3) == b"0"
    assert scan.encode(Place(1, 0), 3) == b"1"
    assert scan.decode(b"0", 3) == Place(0, 0)


def test_one_shard_has_the_servers_own_cursors() -> None:
    assert scan.encode(Place(0, 96), 1) == b"96"
    assert scan.decode(b"18446744073709551615", 1) == Place(0, scan.CURSOR_LIMIT - 1)


@pytest.mark.parametrize("text", [b"", b"x", b"-1", b"1.0", b" 1", b"18446744073709551616", b"1" * 5000])
def test_what_is_no_cursor_is_refused_as_by_a_server(text: bytes) -> None:
    with pytest.raises(BadCursor):
        scan.decode(text, 3)

    def never(shard: int, argv: list[bytes]) -> bytes:
        raise AssertionError("no server is asked")

    assert scan.run([b"scan", text], 3, never) == b"-ERR invalid cursor\r\n"


def test_the_number_wanted() -> None:
    assert scan.wanted(b"scan 0".split()) == 10
    assert scan.wanted(b"scan 0 match count count 5".split()) == 5
    assert scan.wanted(b"scan 0 COUNT 100 type string".split()) == 100
    assert scan.wanted(b"scan 0 count x".split()) == 10


NO_PAGES = [b":1\r\n", b"*2\r\n:1\r\n*0\r\n", b"*2\r\n$1\r\n0\r\n$-1\r\n", b"*2\r\n$1\r\nx\r\n*0\r\n"]


@pytest.mark.parametrize("reply", NO_PAGES)
def test_a_reply_that_scan_never_gives_is_refused(reply: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        scan.parse_page(reply)


def test_a_page() -> None:
    assert scan.parse_page(b"*2\r\n$2\r\n17\r\n*1\r\n$1\r\na\r\n") == Page(17, 1, b"$1\r\na\r\n")


def test_a_servers_error_is_the_reply() -> None:
    assert scan.run([b"scan", b"0", b"x"], 3, lambda shard, argv: b"-ERR syntax error\r\n") == b"-ERR syntax error\r\n"


def test_an_overflow_is_an_error_and_no_wrong_cursor() -> None:
    page = b"*2\r\n$20\r\n18446744073709551615\r\n*0\r\n"
    assert scan.run([b"scan", b"0"], 2, lambda shard, argv: page).startswith(b"-ERR the cursor of shard 0 ")


@pytest.fixture
def call(connect: Callable[[int], Raw]) -> Callable[[int, list[bytes]], bytes]:
    shards = [connect(node) for node in range(3)]

    def ask(shard: int, argv: list[bytes]) -> bytes:
        return shards[shard].redis(*argv)

    return ask


def walk(call: Callable[[int, list[bytes]], bytes], *options: bytes) -> tuple[list[bytes], int]:
    keys: list[bytes] = []
    cursor, calls = b"0", 0
    while True:
        reply = parse(scan.run([b"scan", cursor, *options], 3, call))
        assert isinstance(reply, list)
        cursor, found = reply
        keys += found
        calls += 1
        if cursor == b"0":
            return keys, calls


def test_a_scan_finds_every_key_of_every_server(call: Callable[[int, list[bytes]], bytes]) -> None:
    expected = set()
    for number in range(300):
        key = b"key:%d" % number
        call(number % 3, [b"set", key, b"v"])
        expected.add(key)
    for number in range(7):
        call(1, [b"sadd", b"set:%d" % number, b"m"])
    keys, calls = walk(call, b"match", b"key:*")
    assert set(keys) == expected
    assert calls > 10
    assert set(walk(call, b"count", b"1000", b"type", b"set")[0]) == {b"set:%d" % number for number in range(7)}


def test_few_keys_come_in_one_reply(call: Callable[[int, list[bytes]], bytes]) -> None:
    assert walk(call) == ([], 1)
    for shard in range(3):
        call(shard, [b"set", b"key%d" % shard, b"v"])
    assert walk(call) == ([b"key0", b"key1", b"key2"], 1)
    assert walk(call, b"count", b"2") == ([b"key0", b"key1", b"key2"], 2)
