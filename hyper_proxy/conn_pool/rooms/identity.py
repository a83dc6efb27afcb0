"""Hears signs of life: is the server well, and is it the process that it was?"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from hyper_proxy.common.board import Place

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.rooms.pair import Pair
    from hyper_proxy.conn_pool.routes.speech import Speech

IDENTITIES = (3, 4)
"""Words of a place of the board: which process was last seen at each side."""


class Hearing:
    """place: None where it does not matter that a server began anew."""

    def __init__(self, pair: Pair, speech: Speech, place: Place | None) -> None:
        self.pair = pair
        self.speech = speech
        self.place = place

    def __call__(self, side: int, reply: bytes) -> str:
        """What is wrong, "" for nothing."""
        if self.speech.is_error(reply):
            return f"it is not well: {reply[:80].decode(errors='replace').strip()}"
        if self.place is not None:
            identity = self.speech.identity(reply)
            if identity and self._is_new(self.place, side, identity):
                self.pair.renewed(side)
        return ""

    def _is_new(self, place: Place, side: int, identity: bytes) -> bool:
        """Was another process seen before? It is noted in any case."""
        number = int.from_bytes(blake2b(identity, digest_size=8).digest(), "big") | 1
        word = IDENTITIES[side]
        if place.words[word] == number:
            return False
        with place.change() as mine:
            before = int(place.words[word])
            if not mine or before == number:
                return False
            place.words[word] = number
        return before != 0
