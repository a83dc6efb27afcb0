"""The reader of HTTP requests, fed in any pieces: each request ends where it ends, and not a byte later."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.protocol.functions.protocol import Client, Partly
from hyper_proxy.protocol.http.front import Http
from hyper_proxy.protocol.http.refusal import Refusal
from hyper_proxy.protocol.http.requests import MOST_PIECES, Reader
from hyper_proxy.protocol.http.responses import Response

LIMITS: Any = SimpleNamespace(max_line_bytes=4000, max_value_bytes=100_000)

# What looks like the end of a head, of a line of chunks, of the last chunk or of a trailer.
EVIL = st.lists(
    st.sampled_from([b"\n\r\n", b"\r\n", b"\n", b"\r", b"0\r\n\r\n", b"0\r\n", b"GET / HTTP/1.1\r\n\r\n", b"x", b"\0"]),
    max_size=12,
).map(b"".join)  # fmt: skip
HEADERS = st.lists(st.sampled_from([b"A: b\r\n", b"Empty: \r\n"]), max_size=3).map(b"".join)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, str, bytes]:
    """The bytes of one, its method and its body."""
    form = draw(st.sampled_from(["none", "length", "chunks"]))
    before = draw(st.sampled_from([b"", b"", b"\r\n"]))  # which is passed over
    head = b"Host: x\r\n" + draw(HEADERS)
    if form == "none":
        return before + b"GET /v1/web/a HTTP/1.1\r\n" + head + b"\r\n", "GET", b""
    put = before + b"PUT /v1/web/a HTTP/1.1\r\n" + head
    if form == "length":
        body = draw(EVIL)
        return put + b"Content-Length: %d\r\n\r\n" % len(body) + body, "PUT", body
    chunks = [chunk for chunk in draw(st.lists(EVIL, max_size=4)) if chunk]
    extension = draw(st.sampled_from([b"", b";x", b";x=y"]))
    coded = b"".join(b"%x%b\r\n%b\r\n" % (len(chunk), extension, chunk) for chunk in chunks)
    trailer = draw(st.sampled_from([b"", b"T: \r\n", b"T: u\r\nV: w\r\n"]))
    return put + b"Transfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\n" + trailer + b"\r\n", "PUT", b"".join(chunks)


def read(reader: Reader, piece: bytes, found: list[tuple[str, bytes]]) -> list[int]:
    """Give the reader all of these bytes; where requests have ended in them."""
    at, ends = 0, []
    while at < len(piece):
        at = reader.feed(piece, at, LIMITS)
        if reader.whole:
            found.append((reader.request.method, reader.request.body))
            ends.append(at)
    return ends


@given(st.lists(requests(), min_size=1, max_size=5), st.data())
def test_requests_end_where_they_end_in_whatever_pieces_they_come(
    sent: list[tuple[bytes, str, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(one for one, _, _ in sent)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=20)))
    reader = Reader()
    found: list[tuple[str, bytes]] = []
    ends: list[int] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        ends += [start + at for at in read(reader, stream[start:end], found)]
    assert found == [(method, body) for _, method, body in sent]
    wanted = [len(stream) - sum(len(one) for one, _, _ in sent[number:]) for number in range(1, len(sent) + 1)]
    assert ends == wanted


@given(st.lists(st.sampled_from([b"GET ", b"/", b" HTTP/1.1", b"\r\n", b"\n", b":", b"A", b"Content-Length: 3",
                                 b"Transfer-Encoding: chunked", b"Host: x", b"3", b"\0"]), max_size=40),
       st.integers(1, 30))  # fmt: skip
def test_whatever_comes_is_read_or_refused_the_same_in_all_pieces(words: list[bytes], size: int) -> None:
    stream = b"".join(words)
    outcomes = []
    for width in (len(stream) or 1, size, 1):
        reader, refused = Reader(), ""
        found: list[tuple[str, bytes]] = []
        try:
            for start in range(0, len(stream), width):
                read(reader, stream[start : start + width], found)
        except Refusal as refusal:
            refused = refusal.word
        outcomes.append((found, refused))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_body_that_may_end_at_every_third_byte_leaves_others_their_turn() -> None:
    reader = Reader()
    head = b"PUT /v1/web/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = head + b"%x\r\n" % 30_000 + b"\n\r\n" * 10_000 + b"\r\n0\r\n\r\n"
    at, turns = 0, 0
    while at < len(data):
        before, at = at, reader.feed(data, at, LIMITS)
        assert before < at <= before + 3 * MOST_PIECES + 100
        turns += 1
    assert turns > 10_000 / MOST_PIECES
    assert reader.whole and reader.request.body == b"\n\r\n" * 10_000


@pytest.mark.parametrize("body", [b"abc", b""])
def test_leave_to_send_is_asked_for_once(body: bytes) -> None:
    reader = Reader()
    head = b"PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    reader.feed(head, 0, LIMITS)
    assert reader.whole == (not body)
    if body:
        assert (reader.waits(), reader.waits(), reader.left) == (True, False, 3)
        assert reader.feed(b"abcGET", 0, LIMITS) == 3
        assert reader.whole


def head(*headers: bytes, version: bytes = b"1.1") -> bytes:
    """The head of a PUT."""
    return b"PUT /v1/web/a HTTP/%b\r\nHost: x\r\n%b\r\n" % (version, b"".join(one + b"\r\n" for one in headers))


@pytest.mark.parametrize("digits", [21, 5000])
def test_a_length_of_more_digits_than_any_number_has_is_malformed(digits: int) -> None:
    limits: Any = SimpleNamespace(max_line_bytes=65536, max_value_bytes=100_000)
    with pytest.raises(Refusal) as refused:
        Reader().feed(head(b"Content-Length: " + b"0" * digits), 0, limits)
    assert (refused.value.status, refused.value.word) == (400, "malformed")
    reader = Reader()
    whole = head(b"Content-Length: " + b"3".zfill(20)) + b"abc"
    assert reader.feed(whole, 0, limits) == len(whole)
    assert reader.whole and reader.request.body == b"abc"


def test_space_around_the_value_of_a_header_is_none_of_it() -> None:
    reader = Reader()
    reader.feed(head(b"Content-Encoding: \t identity \t", b"Content-Length: 1 ", b"Expect: 100-continue\t"), 0, LIMITS)
    assert reader.request.header("content-encoding") == "identity"
    assert reader.waits()
    Reader().feed(head(b"Transfer-Encoding: chunked ") + b"0\r\n\r\n", 0, LIMITS)


def test_only_clients_that_know_it_are_given_leave_to_send() -> None:
    reader = Reader()
    reader.feed(head(b"Expect: 100-continue", b"Content-Length: 3", version=b"1.0"), 0, LIMITS)
    assert not reader.waits()


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [(b"1.1", b"", True), (b"1.1", b", close", False), (b"1.0", b"", False), (b"1.0", b", keep-alive", True)],
)
def test_a_wish_for_another_protocol_does_not_change_who_stays(version: bytes, connection: bytes, keeps: bool) -> None:
    reader = Reader()
    reader.feed(head(b"Upgrade: h2c", b"Connection: Upgrade" + connection, version=version), 0, LIMITS)
    assert reader.whole and reader.request.keep_alive == keeps


def test_a_body_of_small_chunks_takes_the_memory_of_its_bytes() -> None:
    reader = Reader()
    reader.feed(head(b"Transfer-Encoding: chunked"), 0, LIMITS)
    piece = b"2\r\nab\r\n" * 1000
    tracemalloc.start()
    try:
        for _ in range(40):
            at = 0
            while at < len(piece):
                at = reader.feed(piece, at, LIMITS)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 80_000 < kept < 160_000
    at, end = 0, b"0\r\n\r\n"
    while at < len(end):
        at = reader.feed(end, at, LIMITS)
    assert reader.whole and reader.request.body == b"ab" * 40_000


def test_of_an_answered_request_nothing_is_kept() -> None:
    instance: Any = SimpleNamespace(name="web", limits=SimpleNamespace(max_line_bytes=65536, max_value_bytes=100_000))
    served = [Http().opened(Client("x", instance)) for _ in range(10)]
    asked = head(b"Cookie: " + b"c" * 40_000, b"Content-Length: 9").replace(b"/a ", b"/a?x=%b " % (b"q" * 20_000))
    tracemalloc.start()
    try:
        for one in served:
            found = one.unserialize(asked, 0)
            assert isinstance(found, Partly)
            assert isinstance(one.unserialize(b"123456789", 0), tuple)
            assert one.serialize(Response(204)).startswith(b"HTTP/1.1 204 ")
            del found
        kept = tracemalloc.get_traced_memory()[0] / len(served)
    finally:
        tracemalloc.stop()
    assert kept < 6000
