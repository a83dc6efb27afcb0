"""Hears signs of life: is the server well, and is it the process that it was?"""

from __future__ import annotations

from collections.abc import Callable
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
        self._look(side, reply)
        return ""

    def meet(self, side: int, ask: Callable[[bytes], bytes]) -> None:
        """On a new connection, before any request: an address that stands for a server may have accepted it while
        another process took the place of the one before, without a sign of that."""
        if self.place is not None and self.speech.question != self.pair.nodes[side].greeting.probe:
            reply = ask(self.speech.question)
            if not self.speech.is_error(reply):
                self._look(side, reply)

    def _look(self, side: int, reply: bytes) -> None:
        """Was another process seen before? Whoever finds this one noted finds the consequences as well."""
        identity = self.speech.identity(reply)
        if self.place is None or not identity:
            return
        number = int.from_bytes(blake2b(identity, digest_size=8).digest(), "big") | 1
        words, word = self.place.words, IDENTITIES[side]
        if words[word] == number:
            return
        with self.place.board.lock(self.place.index, wait=True):
            before = words[word]
            if before not in (0, number):
                self.pair.renewed(side)
            words[word] = number
