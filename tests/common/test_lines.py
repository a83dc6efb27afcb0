"""The queue of finished lines: their order, its bound, and when it tells of them; compiled and plain."""

from __future__ import annotations

from types import ModuleType

from tests.kit.plain import both

BLOCK = 65536


def content(lines: object) -> bytes:
    taken = lines.take()  # type: ignore[attr-defined]
    whole = b"".join(taken)
    lines.give_back(taken)  # type: ignore[attr-defined]
    return whole


@both("hyper_proxy.common.lines")
def test_lines_of_any_size_keep_their_order(module: ModuleType) -> None:
    lines = module.Lines(1 << 24, lambda: None)
    for turn in range(3):  # blocks are used again
        put = [b"%d %d %b\n" % (turn, size, b"x" * size) for size in (0, 100, BLOCK, 3, BLOCK - 8, 200_000, 5) * 3]
        for line in put:
            lines.put(line)
        assert content(lines) == b"".join(put)
    assert content(lines) == b""
    assert lines.lost == 0


@both("hyper_proxy.common.lines")
def test_what_is_being_written_counts_until_it_is_given_back(module: ModuleType) -> None:
    lines = module.Lines(1000, lambda: None)
    for _ in range(11):
        lines.put(b"x" * 99 + b"\n")
    assert lines.lost == 1
    taken = lines.take()
    lines.put(b"lost\n")
    assert (lines.lost, lines.tell(), lines.tell()) == (2, 2, 0)
    lines.give_back(taken)
    lines.put(b"kept\n")
    assert content(lines) == b"kept\n"


@both("hyper_proxy.common.lines")
def test_the_alarm_rings_once(module: ModuleType) -> None:
    rung: list[int] = []
    lines = module.Lines(1000, lambda: rung.append(1))
    lines.put(b"not yet\n")
    lines.alarm_at = 20
    lines.put(b"12 bytes...\n")
    for _ in range(3):
        assert len(rung) == 1
        lines.put(b"more\n")
