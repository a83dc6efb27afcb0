"""The rooms of one pool: a pair for each of its servers that has a peer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from hyper_proxy.common.board import BOARDS
from hyper_proxy.conn_pool.rooms.empty import Emptying
from hyper_proxy.conn_pool.rooms.heart import Heart
from hyper_proxy.conn_pool.rooms.lane import MarkLane, RoomLane
from hyper_proxy.conn_pool.rooms.local import nearer
from hyper_proxy.conn_pool.rooms.pair import Pair
from hyper_proxy.conn_pool.rooms.standing import Standing
from hyper_proxy.conn_pool.rooms.target import RoomTarget

if TYPE_CHECKING:
    from hyper_proxy.config.model import Level
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.node import Greeting, Node
    from hyper_proxy.conn_pool.routes.speech import Speech

MARKS = "marks"
"""The way of writing of caches (rooms.writes): to both nodes, and what one has missed is removed with all it has."""


def as_cache(level: Level) -> Level:
    """The level as one above another has it, whatever is said of the writes of its rooms."""
    return replace(level, rooms=replace(level.rooms, writes=MARKS, on_return="empty"))


def second_room(level: Level) -> Level:
    """The servers of the second room as a level of their own."""
    return replace(level, servers=level.peers, peers=())


class Rooms:
    """first, second: nodes by shard."""

    def __init__(
        self, instance: str, level: Level, greeting: Greeting, speech: Speech,
        first: Iterable[Node], second: Iterable[Node],
    ) -> None:  # fmt: skip
        rooms = level.rooms
        board = BOARDS.of(rooms.folder)
        preferred = {"first": 0, "second": 1}.get(rooms.prefer)
        if preferred is None:
            preferred = nearer(level.servers, level.peers)
        clean_by = "empty" if rooms.on_return == "empty" else ""
        is_error = speech.is_error
        make: Callable[..., RoomLane] = MarkLane if rooms.writes == MARKS else RoomLane
        empty = speech.empty(rooms.writes != MARKS)
        self.pairs: list[Pair] = []
        self.hearts: list[Heart] = []
        self.targets: list[RoomTarget] = []
        for nodes in zip(first, second, strict=True):
            name = " ".join([instance, rooms.writes, *(node.server.address for node in nodes)])
            pair = Pair(instance, rooms, nodes, board.place(name), preferred, clean_by)
            self.pairs.append(pair)
            for side, node in enumerate(nodes):
                node.standing = Standing(pair, side)
            self.hearts.append(Heart(pair, greeting, is_error, Emptying(pair, greeting, empty)))
            self.targets.append(RoomTarget(pair, partial(_lane, make, pair, is_error)))

    def stop(self) -> None:
        """Another configuration serves."""
        for heart in self.hearts:
            heart.stop()


def _lane(
    make: Callable[..., RoomLane], pair: Pair, is_error: Callable[[bytes], bool], lanes: Sequence[Lane]
) -> RoomLane:
    return make(lanes, pair, is_error)
