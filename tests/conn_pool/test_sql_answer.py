"""Answers of a MySQL server: whole, in pieces, too long, and what is no answer at all."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.kit.plain import both

MODULE = "hyper_proxy.conn_pool.sql_answer"
LONGEST = 0xFFFFFF
EOF = b"\xfe\x00\x00\x02\x00"


def packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes((number & 0xFF,)) + payload


def answer_of(*payloads: bytes) -> bytes:
    return b"".join(packet(number, payload) for number, payload in enumerate(payloads, 1))


def text(value: bytes) -> bytes:
    """A length-encoded string."""
    size = len(value)
    if size < 0xFB:
        return bytes((size,)) + value
    mark, width = (b"\xfc", 2) if size < 1 << 16 else (b"\xfd", 3) if size < 1 << 24 else (b"\xfe", 8)
    return mark + size.to_bytes(width, "little") + value


def column(name: bytes) -> bytes:
    return b"".join(text(part) for part in (b"def", b"app", b"kv", b"kv", name, name)) + b"\x0c" + bytes(12)


LONG = bytes(range(256)) * 300
ROWS: list[tuple[bytes | None, ...]] = [(b"k1", b"v"), (b"", None), (b"\xfe" * 8, LONG), (b"x" * 251, b"y" * 250)]
SELECT = answer_of(
    b"\x02", column(b"k"), column(b"v"), EOF,
    *(b"".join(b"\xfb" if field is None else text(field) for field in row) for row in ROWS), EOF,
)  # fmt: skip
DONE = answer_of(b"\x00\xfc\x00\x01\x00\x02\x00\x00\x00")
FAILED = answer_of(b"\xff\x15\x04#42000Unknown")


def read(module: ModuleType, *pieces: bytes) -> Any:
    """The answer, which must be whole with the last piece and not before."""
    answer = module.Answer()
    assert [answer.feed(piece) for piece in pieces] == [False] * (len(pieces) - 1) + [True]
    return answer


@both(MODULE)
def test_rows(module: ModuleType) -> None:
    answer = read(module, SELECT)
    assert answer.rows == ROWS
    assert (answer.affected, answer.failure) == (len(ROWS), b"")
    assert [definition[-13 - len(b"k") : -13] for definition in answer.definitions] == [b"k", b"v"]


@both(MODULE)
def test_changes_and_failures(module: ModuleType) -> None:
    assert read(module, DONE).affected == 256
    assert read(module, FAILED).failure == b"\xff\x15\x04#42000Unknown"
    in_the_middle = SELECT[: -len(packet(0, EOF))] + packet(8, b"\xff\x15\x04#42000Unknown")
    assert read(module, in_the_middle).failure


@both(MODULE)
def test_every_split_and_byte_by_byte(module: ModuleType) -> None:
    short = answer_of(b"\x02", column(b"k"), column(b"v"), EOF, text(b"a") + b"\xfb", EOF)
    for whole, rows in ((short, [(b"a", None)]), (DONE, []), (FAILED, [])):
        assert read(module, *(whole[at : at + 1] for at in range(len(whole)))).rows == rows
        for cut in range(1, len(whole)):
            assert read(module, whole[:cut], whole[cut:]).rows == rows


@both(MODULE)
def test_a_row_that_is_longer_than_a_packet(module: ModuleType) -> None:
    for extra in (0, 1, 1000):
        value = b"z" * (LONGEST - 4 + extra)  # a length of 4 bytes, then of 9
        row = text(value)
        parts = [row[at : at + LONGEST] for at in range(0, len(row) + 1, LONGEST)]
        assert read(module, answer_of(b"\x01", column(b"v"), EOF, *parts, EOF)).rows == [(value,)]


@both(MODULE)
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (answer_of(b"\xfbfile"), "a file of this machine"),
        (answer_of(b"\x00\x00") + b"\x00", "more than it was asked"),
        (answer_of(b""), "empty packet"),
        (answer_of(b"\xfd\xff\xff\xff"), "columns"),
        (answer_of(b"\x01x"), "columns"),
        (answer_of(b"\x01", column(b"v"), text(b"no EOF")), "have no end"),
        (answer_of(b"\x01", column(b"v"), EOF, b"\x05abc"), "longer than its row"),
        (answer_of(b"\x01", column(b"v"), EOF, b"\x01ab"), "longer than its columns"),
        (answer_of(b"\x01", column(b"v"), EOF, b"\xfc\x01"), "in the middle of a number"),
        (answer_of(b"\x01", column(b"v"), EOF, b"\xfe" + b"\xff" * 8 + b"x"), "no length"),
        (answer_of(b"\x02", column(b"k"), column(b"v"), EOF, text(b"one")), "in the middle of a number"),
    ],
)
def test_what_is_no_answer(module: ModuleType, wrong: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        module.Answer().feed(wrong)


@both(MODULE)
@pytest.mark.parametrize("size", [0, 1, 100, LONGEST - 2, LONGEST - 1, LONGEST, 2 * LONGEST])
def test_commands_are_cut_into_packets(module: ModuleType, size: int) -> None:
    sent = module.packets(3, b"q" * size)
    payloads = []
    number = 0
    while sent:
        length = int.from_bytes(sent[:3], "little")
        assert sent[3] == number
        payloads.append(sent[4 : 4 + length])
        sent = sent[4 + length :]
        number += 1
    assert b"".join(payloads) == b"\x03" + b"q" * size
    assert [len(payload) for payload in payloads[:-1]] == [LONGEST] * (len(payloads) - 1)
    assert len(payloads[-1]) < LONGEST
