"""What a node of a pair is just now, and who its server is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hyper_proxy.conn_pool.rooms.pair import BEHIND, LOST

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.rooms.identity import Hearing
    from hyper_proxy.conn_pool.rooms.pair import Pair


class Standing:
    """Of one side of a pair."""

    def __init__(self, pair: Pair, side: int, hearing: Hearing) -> None:
        self.pair = pair
        self.side = side
        self.hearing = hearing

    def meet(self, ask: Callable[[bytes], bytes]) -> None:
        """Find out which process the server is, on a new connection to it."""
        self.hearing.meet(self.side, ask)

    @property
    def serves(self) -> bool:
        """Do requests go to it?"""
        return self.pair.active == self.side

    @property
    def is_behind(self) -> bool:
        """Has it missed something?"""
        return bool(self.pair.state(self.side) & (BEHIND | LOST))

    @property
    def missed(self) -> int:
        """Keys in the journal of what it has missed, of this worker."""
        return self.pair.missed(self.side)
