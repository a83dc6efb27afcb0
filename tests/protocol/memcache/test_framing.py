"""The framer finds the same requests however they arrive, compiled and plain, and sends on only what has one answer."""

from __future__ import annotations

import importlib
import os
import random
from types import ModuleType

import pytest

from tests.kit.pieces import all_ways, bytewise, whole
from tests.kit.plain import both, plain
from tests.protocol.memcache.requests import COMMANDS, META, events, random_pieces, random_stream

MODULE = "hyper_proxy.protocol.memcache.framing"
SHORT = [request for request in COMMANDS + META if len(request) < 300]

# HYPER_PROXY_FUZZ_CASES=1000000 for the long run.
FUZZ_CASES = int(os.environ.get("HYPER_PROXY_FUZZ_CASES", "100000"))


@both(MODULE)
@pytest.mark.parametrize("request_", SHORT)
def test_a_request_is_the_same_however_it_arrives(module: ModuleType, request_: bytes) -> None:
    stream = request_ + b"get next\r\n"
    expected = list(events(module, whole(stream)))
    for pieces in all_ways(stream):
        assert list(events(module, pieces)) == expected


@both(MODULE)
def test_all_requests_in_one_stream(module: ModuleType) -> None:
    stream = b"".join(SHORT)
    expected = [event for request in SHORT for event in events(module, whole(request))]
    assert list(events(module, whole(stream))) == expected
    assert list(events(module, bytewise(stream))) == expected


@both(MODULE)
def test_large_requests(module: ModuleType) -> None:
    for request in COMMANDS + META:
        if request not in SHORT:
            pieces = [request[i : i + 777] for i in range(0, len(request), 777)]
            assert list(events(module, pieces)) == list(events(module, whole(request)))


@both(MODULE)
@pytest.mark.parametrize(
    ("request_", "sent"),
    [
        (b"get k\r\n", b"get k\r\n"),
        (b"get k\n", b"get k\n"),
        (b"get a\0b\r\n", b"get a\r\n"),
        (b"set k 0 0 1\r\nx\r\n", b"set k 0 0 1\r\nx\r\n"),
        (b"set k 0 0 1 noreply\r\nx\r\n", b"set k 0 0 1\r\nx\r\n"),
        (b"set k 0 0 1 what\r\nx\r\n", b"set k 0 0 1\r\nx\r\n"),
        (b"set k 4294967296 -2147483649 4294967297\r\nx\r\n", b"set k 0 2147483647 1\r\nx\r\n"),
        (b"cas k +1 0 1 -18446744073709551615 noreply\r\nx\r\n", b"cas k 1 0 1 1\r\nx\r\n"),
        (b"incr k 1 noreply\r\n", b"incr k 1\r\n"),
        (b"incr k 18446744073709551615\r\n", b"incr k 18446744073709551615\r\n"),
        (b"touch k \t5 2\r\n", b"touch k 5\r\n"),
        (b"delete k 0 noreply\r\n", b"delete k\r\n"),
        (b"delete noreply noreply\r\n", b"delete noreply\r\n"),
        (b"mg k v q t\r\n", b"mg k v  t\r\n"),
        (b"ms k 2 q T0\r\nab\r\n", b"ms k 2  T0\r\nab\r\n"),
        (b"ms k +2 T0 q\r\nab\r\n", b"ms k 2 T0\r\nab\r\n"),
        (b"mg" + b" " * 3000 + b"k v\r\n", b"mg k v\r\n"),
    ],
)
def test_what_is_sent_on(module: ModuleType, request_: bytes, sent: bytes) -> None:
    assert [event[3] for event in events(module, whole(request_))] == [sent]


@both(MODULE)
def test_a_line_without_end_is_fatal_at_its_limit_and_not_before(module: ModuleType) -> None:
    assert list(events(module, whole(b"get " + b"k" * 96), max_line=100)) == []
    assert list(events(module, whole(b"get " + b"k" * 97), max_line=100)) == ["line too long"]
    assert list(events(module, whole(b"get " + b"k" * 97 + b"\r\n"), max_line=100)) == ["line too long"]


@both(MODULE)
@pytest.mark.parametrize(
    ("begun", "said"),
    [
        (b"\x80\x0b" + bytes(22), "the binary protocol is not served: let the client speak the text protocol"),
        (b"\x80\x00\x00\x0a" + bytes(20), "the binary protocol is not served: let the client speak the text protocol"),
        (b"\x16\x03\x01\x02\x00\x01", "TLS is not served: let the client connect without"),
    ],
)
def test_who_speaks_another_protocol_is_told_and_does_not_wait(module: ModuleType, begun: bytes, said: str) -> None:
    assert list(events(module, whole(begun))) == [said]


@both(MODULE)
def test_a_value_over_the_limit_is_skipped_without_being_kept(module: ModuleType) -> None:
    framer = module.Framer(250, 10, 100)
    line = b"set k 0 0 11\r\n"
    assert framer.scan(line, 0) == len(line)
    assert framer.error == b"SERVER_ERROR object too large for cache\r\n"
    assert (framer.swallow, framer.stale) == (13, True)


def test_fuzz_compiled_and_plain_find_the_same() -> None:
    """Random streams, whole and in pieces; what is sent on is a request that needs no more change."""
    built, source = importlib.import_module(MODULE), plain(MODULE)
    dice = random.Random(20231)
    for _ in range(FUZZ_CASES):
        stream = random_stream(dice)
        found = list(events(built, whole(stream)))
        assert list(events(built, random_pieces(dice, stream))) == found, stream
        assert list(events(source, random_pieces(dice, stream))) == found, stream
        for name, key, *rest in (event for event in found if len(event) == 7 and event[1]):
            several, sent, _, quiet, encoded = rest
            if several is None and quiet < 2:
                assert list(events(built, whole(sent))) == [(name, key, None, sent, False, 0, encoded)], stream
