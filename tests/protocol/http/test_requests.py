"""The reader of HTTP requests, fed in any pieces: each request ends where it ends, and not a byte later."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.protocol.http.refusal import Refusal
from hyper_proxy.protocol.http.requests import MOST_PIECES, Reader

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
