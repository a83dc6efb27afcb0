"""What a node of a pair is just now, for statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hyper_proxy.conn_pool.rooms.pair import BEHIND, LOST

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.rooms.pair import Pair


class Standing:
    """Of one side of a pair."""

    def __init__(self, pair: Pair, side: int) -> None:
        self.pair = pair
        self.side = side

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
