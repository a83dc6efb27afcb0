"""The rooms of one pool: a pair for each of its servers that has a peer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

from hyper_proxy.common.board import BOARDS, Board
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.conn_pool.rooms.carrying import Carrier
from hyper_proxy.conn_pool.rooms.copying import Copying
from hyper_proxy.conn_pool.rooms.empty import Emptying
from hyper_proxy.conn_pool.rooms.heart import Heart
from hyper_proxy.conn_pool.rooms.identity import Hearing
from hyper_proxy.conn_pool.rooms.lane import MarkLane, RoomLane
from hyper_proxy.conn_pool.rooms.local import nearer, routes
from hyper_proxy.conn_pool.rooms.mirror import MirrorLane
from hyper_proxy.conn_pool.rooms.overlap import overlap
from hyper_proxy.conn_pool.rooms.pair import ROOMS, Pair
from hyper_proxy.conn_pool.rooms.standing import Standing
from hyper_proxy.conn_pool.rooms.target import RoomTarget

if TYPE_CHECKING:
    from hyper_proxy.config.model import Level
    from hyper_proxy.conn_pool.greeting import Greeting
    from hyper_proxy.conn_pool.node import Node
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
    """first, second: nodes by shard. previous: the rooms of the configuration before; known: the addresses of all its
    servers.

    What is known of a pair is kept by its addresses, whichever of them stands in the first room.
    """

    def __init__(
        self, instance: str, level: Level, greeting: Greeting, speech: Speech,
        first: Iterable[Node], second: Iterable[Node], previous: Iterable[Rooms] = (), known: Collection[str] = (),
    ) -> None:  # fmt: skip
        rooms = level.rooms
        try:
            board = BOARDS.of(rooms.folder)
        except OSError as error:
            raise HyperProxyError(f"instance '{instance}': rooms.folder {rooms.folder}: {error.strerror}") from error
        preferred = rooms.prefer
        if preferred == "local":
            preferred = ROOMS[nearer(level.servers, level.peers, routes())]
        before = {pair.addresses: pair for one in previous for pair in one.pairs}
        self.level = level
        self.greeting = greeting
        self.speech = speech
        self.hearts: list[Heart] = []
        self.copyings: list[Copying] = []
        self.pairs: list[Pair] = []
        self.targets: list[RoomTarget] = []
        for both in zip(first, second, strict=True):
            sides = sorted(zip(both, ROOMS, strict=True), key=lambda side: side[0].server.address)
            nodes, names = zip(*sides, strict=True)
            name = " ".join([instance, rooms.writes, *(node.server.address for node in nodes)])
            clean_by = "copy" if rooms.writes == "mirror" else rooms.on_return
            pair = Pair(instance, rooms, nodes, names, board.place(name), preferred, clean_by)
            self.pairs.append(pair)
            for side, node in enumerate(nodes):
                node.standing = Standing(pair, side)
            served = _who_served(pair, before.get(pair.addresses), known)
            if served is not None:
                pair.begin_with(served)
            self.targets.append(self._mirror(pair, board, name) if clean_by == "copy" else self._single(pair))

    def _single(self, pair: Pair) -> RoomTarget:
        marks = self.level.rooms.writes == MARKS
        mend = Emptying(pair, self.greeting, self.speech.empty(not marks))
        self.hearts.append(Heart(pair, self.greeting, self.greeting.probe, Hearing(pair, self.speech, None), mend))
        make = MarkLane if marks else RoomLane
        return RoomTarget(pair, lambda lanes: make(lanes, pair, self.speech.is_error))

    def _mirror(self, pair: Pair, board: Board, name: str) -> RoomTarget:
        place = board.place(f"{name} journal")
        file = f"{pair.instance}.{blake2b(name.encode(), digest_size=8).hexdigest()}"
        carrier = Carrier(pair, self.level, self.greeting, self.speech, overlap())
        copying = Copying(pair, carrier, self.speech, place, file)
        self.copyings.append(copying)
        heart = Heart(pair, self.greeting, self.speech.question, Hearing(pair, self.speech, place), copying)
        heart.tidy = copying.tidy
        heart.is_due = copying.is_due
        self.hearts.append(heart)
        return RoomTarget(pair, lambda lanes: MirrorLane(lanes, copying))

    def stop(self) -> None:
        """Another configuration serves."""
        for heart in self.hearts:
            heart.stop()
        for copying in self.copyings:
            copying.close()


def _who_served(pair: Pair, before: Pair | None, known: Collection[str]) -> int | None:
    """The side that served in the configuration before, when nobody has told its peer of the writes."""
    if before is not None:
        return None if before.place.is_same(pair.place) else before.active
    sides = [side for side, address in enumerate(pair.addresses) if address in known]
    return sides[0] if len(sides) == 1 else None
