"""The rooms of one pool: a pair for each of its servers that has a peer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common.board import BOARDS
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

LEAVE_S = 0.1  # so often is looked whether all that began under a configuration which serves no more is done
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
        self.level = level
        self.greeting = greeting
        self.speech = speech
        self.hearts: list[Heart] = []
        self.copyings: list[Copying] = []
        self.pairs: list[Pair] = []
        self.targets: list[RoomTarget] = []
        self.standings: list[tuple[Node, Standing]] = []
        self.stopped = False
        before = {pair.addresses: pair for one in previous for pair in one.pairs}
        try:
            self.board = BOARDS.of(level.rooms.folder)
            try:
                for both in zip(first, second, strict=True):
                    self._pair_up(instance, both, before, known)
            except BaseException:
                self.stop()
                raise
        except OSError as error:
            where = f"rooms.folder {level.rooms.folder}" if level.rooms.folder else "rooms"
            raise HyperProxyError(f"instance '{instance}': {where}: {error.strerror or error}") from error
        for heart in self.hearts:
            heart.begin()

    def _pair_up(
        self, instance: str, both: Sequence[Node], before: Mapping[tuple[str, ...], Pair], known: Collection[str]
    ) -> None:
        """Raises OSError."""
        rooms = self.level.rooms
        sides = sorted(zip(both, ROOMS, strict=True), key=lambda side: side[0].server.address)
        nodes, names = zip(*sides, strict=True)
        name = " ".join([instance, rooms.writes, *(node.server.address for node in nodes)])
        clean_by = "copy" if rooms.writes == "mirror" else rooms.on_return
        pair = Pair(instance, rooms, nodes, names, self.board.place(name), self._preferred, clean_by)
        self.pairs.append(pair)
        served = _who_served(pair, before.get(pair.addresses), known)
        if served is not None:
            pair.begin_with(served)
        self.targets.append(self._mirror(pair, name) if clean_by == "copy" else self._single(pair))

    @cached_property
    def _preferred(self) -> str:
        level = self.level
        if level.rooms.prefer == "local":
            return ROOMS[nearer(level.servers, level.peers, routes())]
        return level.rooms.prefer

    def _stand(self, pair: Pair, hearing: Hearing) -> Hearing:
        for side, node in enumerate(pair.nodes):
            standing = Standing(pair, side, hearing)
            node.standings.append(standing)
            self.standings.append((node, standing))
        return hearing

    def _single(self, pair: Pair) -> RoomTarget:
        marks = self.level.rooms.writes == MARKS
        mend = Emptying(pair, self.greeting, self.speech.empty(not marks))
        hearing = self._stand(pair, Hearing(pair, self.speech, None))
        self.hearts.append(Heart(pair, self.greeting, self.greeting.probe, hearing, mend))
        make = MarkLane if marks else RoomLane
        return RoomTarget(pair, lambda lanes: make(lanes, pair, self.speech.is_error))

    def _mirror(self, pair: Pair, name: str) -> RoomTarget:
        place = self.board.place(f"{name} journal")
        hearing = self._stand(pair, Hearing(pair, self.speech, place))
        file = f"{pair.instance}.{blake2b(name.encode(), digest_size=8).hexdigest()}"
        carrier = Carrier(pair, self.level, self.greeting, self.speech, overlap())
        copying = Copying(pair, carrier, self.speech, place, file)
        self.copyings.append(copying)
        heart = Heart(pair, self.greeting, self.speech.question, hearing, copying)
        heart.tidy = copying.tidy
        heart.is_due = copying.is_due
        self.hearts.append(heart)
        return RoomTarget(pair, lambda lanes: MirrorLane(lanes, copying))

    def stop(self) -> None:
        """Another configuration serves, or this one could not be built. To stop twice is harmless."""
        if self.stopped:
            return
        self.stopped = True
        for heart in self.hearts:
            heart.stop()
        for copying in self.copyings:
            copying.stop()
        for node, standing in self.standings:
            node.standings.remove(standing)
        if self.level.rooms.folder:
            gevent.spawn(self._leave)

    def _leave(self) -> None:
        """Give the folder back as soon as nobody writes there any more."""
        while any(heart.is_busy for heart in self.hearts) or any(copying.is_busy for copying in self.copyings):
            gevent.sleep(LEAVE_S)
        for copying in self.copyings:
            copying.close()
        BOARDS.leave(self.board)


def _who_served(pair: Pair, before: Pair | None, known: Collection[str]) -> int | None:
    """The side that served in the configuration before, when nobody has told its peer of the writes."""
    if before is not None:
        return None if before.place.is_same(pair.place) else before.active
    sides = [side for side, address in enumerate(pair.addresses) if address in known]
    return sides[0] if len(sides) == 1 else None
