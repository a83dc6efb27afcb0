"""Where a server was when somebody last told, for a worker that starts when nobody does.

It stands in the memory that the workers of a fleet share, which outlives each of them and is handed on by an upgrade.
There are no locks: what two have written at once is seen by its checksum, and taken for nothing.

    place    word 0 is its name; then crc32 of the rest (4 bytes), size of the text (1), the text "HOST:PORT"
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from hyper_proxy.common.board import BOARDS, WORDS

HEAD = 8  # bytes of the place's name
CHECKED = HEAD + 4  # here begins what the checksum is of
LONGEST = 8 * WORDS - CHECKED - 1  # bytes of a text
MOST_KEPT = 8  # addresses of one cluster: one that answers knows the others


class Remembered:
    """One address, by a name that says whose. An address that is too long for a place is not remembered."""

    def __init__(self, name: str) -> None:
        try:
            self.place = BOARDS.of("").place(f"last known {name}").bytes
        except OSError:  # no place is left: this worker alone knows
            self.place = memoryview(bytearray(8 * WORDS))

    def get(self) -> tuple[str, int] | None:
        """None: nobody has told, or it is just being written."""
        kept = bytes(self.place[CHECKED:])
        if int.from_bytes(self.place[HEAD:CHECKED], "little") != crc32(kept) or not kept[0]:
            return None
        host, _, port = kept[1 : 1 + kept[0]].decode().rpartition(":")
        return host, int(port)

    def put(self, address: tuple[str, int] | None) -> None:
        """None: there is none."""
        if address == self.get():
            return
        text = _text(address) if address and _is_kept(address) else b""
        kept = (bytes([len(text)]) + text).ljust(1 + LONGEST, b"\0")
        self.place[HEAD:] = crc32(kept).to_bytes(CHECKED - HEAD, "little") + kept


class RememberedMany:
    """Some addresses."""

    def __init__(self, name: str) -> None:
        self.places = [Remembered(f"{name} {number}") for number in range(MOST_KEPT)]

    def get(self) -> list[tuple[str, int]]:
        """Those that are known."""
        return [address for one in self.places if (address := one.get()) is not None]

    def put(self, addresses: Iterable[tuple[str, int]]) -> None:
        """As many as there is room for."""
        some: list[tuple[str, int] | None] = [*sorted(filter(_is_kept, addresses))[:MOST_KEPT]]
        for one, address in zip(self.places, some + [None] * (MOST_KEPT - len(some)), strict=True):
            one.put(address)


def _text(address: tuple[str, int]) -> bytes:
    return "{}:{}".format(*address).encode()


def _is_kept(address: tuple[str, int]) -> bool:
    return len(_text(address)) <= LONGEST
