"""The servers of a level whose keys move from one pool to another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, Protocol

from gevent import get_hub

from hyper_proxy.common.errors import ClientError, HyperProxyError, SettingRefused
from hyper_proxy.config.model import Level, Route
from hyper_proxy.conn_pool.moving.lane import BEGIN_ANEW
from hyper_proxy.conn_pool.moving.mover import Mover
from hyper_proxy.conn_pool.moving.schedule import OLD, Schedule, homes_at
from hyper_proxy.conn_pool.moving.way import MoveTarget, Way
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.pools import Pools
from hyper_proxy.conn_pool.routes.route import Setting
from hyper_proxy.conn_pool.target import Target
from hyper_proxy.conn_pool.tongue import Tongue

LOOK_S = 10.0  # the clock may be set meanwhile
EMPTYING = frozenset({b"flushall", b"flushdb", b"swapdb"})


def check_all(name: bytes, stage: int) -> None:
    """Raises ClientError for what could not be done to all servers in one moment, at a stage of the move."""
    if name in EMPTYING and stage:
        raise ClientError(f"'{name.decode()}' is not served while keys move from server to server")


class Elder(Protocol):
    """A storage that another configuration has replaced."""

    def halt(self) -> None:
        """No client may begin anything on it any more."""
        ...


class MovingPools(Pools):
    """homes: the servers of the old pool, then those of the new one, so that a walk over them, in this order, meets
    every key: what leaves the old ones behind it arrives before it. A server of both pools is there twice.

    Raises HyperProxyError when the move would begin before the whole fleet knows of it.
    """

    def __init__(self, instance: str, level: Level, tongue: Tongue, previous: Pools | None, mover: Mover) -> None:
        schedule = Schedule.of(level)
        assert schedule is not None
        if previous is not None:
            try:
                schedule.check_begin(previous.schedule)
            except HyperProxyError as error:
                raise SettingRefused(instance, "level[0].route", str(error)) from None
        self.plan = self.schedule = schedule
        self.mover = mover
        self.elders: Iterable[Elder] = ()  # storages of configurations before this one
        self.ways: list[Way] = []
        self.sides: list[list[Node]] = [[], []]
        super().__init__(instance, level, tongue, previous)
        self.homes = [*self.sides[0], *self.sides[1]]
        self.timer: Any = None
        self.stage = schedule.ahead()
        self._arm()

    def _targets(self, route: Route) -> list[Target]:
        if route.kind != "move":
            return super()._targets(route)
        self.sides = [[*self.by_name[child.pool]] for child in route.children]
        setting = Setting(route, self.speech)
        made: list[Target] = []
        for old, new in product(*self.sides):
            if old is new:
                made.append(old)
            else:
                self.ways.append(Way(setting, (old, new), self.plan, self.mover))
                made.append(MoveTarget(self.ways[-1]))
        return made

    def receivers(self, name: bytes, read: bool) -> list[Target]:
        """Raises ClientError for what could not be done to all servers in one moment."""
        stage = self.plan.ahead()
        check_all(name, stage)
        if not read:
            return self.every
        return [*self.sides[OLD]] if stage == 0 else list(dict.fromkeys(self.homes))

    def _arm(self) -> None:
        """The next hold, if there is one to come."""
        left = self.plan.next_hold()
        if left is not None:
            self.timer = get_hub().loop.timer(min(left + 0.001, LOOK_S))
            self.timer.start(self._look)

    def _look(self) -> None:
        self.timer.close()
        self.timer = None
        stage = self.plan.ahead()
        if stage != self.stage:
            self.stage = stage
            self._cut(stage)
        self._arm()

    def _cut(self, stage: int) -> None:
        """A hold begins: what clients do alone with a server that will not serve its keys any more ends here.

        What was sent is answered; so who is told to begin anew knows that nothing was done.
        """
        source = homes_at(stage)[0]
        left = self.plan.moment_left()
        for node in {way.nodes[source] for way in self.ways}:
            for lane in list(node.lanes):
                if lane.private:
                    lane.finish("moving", BEGIN_ANEW, left)
        for elder in self.elders:
            elder.halt()

    def close(self, successor: Pools | None) -> None:
        """Those who share its nodes keep them."""
        if self.timer is not None:
            self.timer.close()
            self.timer = None
        super().close(successor)
