"""Where a level above another has copies of a key, and which of its servers a write reaches."""

from __future__ import annotations

from collections.abc import Iterator

from hyper_proxy.config.model import MAIN, Config, Level, Pool, Route
from hyper_proxy.config.notes import Path
from hyper_proxy.config.routes import all_routes, home_of

COPYING = ("redis", "memcache")
"""The storages that are servers with copies, in levels above another; others fill Lushan."""
SEVERAL = frozenset(("all", "any", "eject", "failover", "fastest", "majority", "migrate"))
"""The routes by which more than one server may be asked for a key; above another level each of them is marked."""
IN_TURN = frozenset(("eject", "failover"))
"""Those of them that ask one after the other."""

Fault = tuple[Path, str]


def is_told(level: Level) -> bool:
    """Of a level above another: do writes leave marks in it?"""
    return level.storage in COPYING and not level.read_only and level.write != "around"


def keeping(route: Route) -> list[int]:
    """The indexes of the children in which copies are kept, and marks set."""
    return [home_of(route)] if route.kind in ("class", "shadow") else list(range(len(route.children)))


def written(route: Route) -> Iterator[Route]:
    """A route and all in it in which copies are kept."""
    yield route
    for index in keeping(route):
        yield from written(route.children[index])


def written_pools(level: Level) -> frozenset[str]:
    """The pools in whose servers a write leaves its marks."""
    return frozenset(one.pool for one in written(level.route or Route("pool", pool=MAIN)) if one.kind == "pool")


def keeps_several(level: Level) -> bool:
    """May a key have copies at more than one server?"""
    routes = written(level.route) if level.route else ()
    return bool(level.all_peers) or any(route.kind in SEVERAL for route in routes)


def unreached_copies(config: Config) -> Iterator[Fault]:
    """Where a read would find copies that no write has reached (HP227), with what to write instead."""
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels[:-1]):
            path: Path = ("instance", i, "level", j)
            if level.route is not None and any(route.kind == "warm_up" for route in all_routes(level.route)):
                text = "warm_up would bring back what writes have replaced, which the warm servers still have"
                text += ": in a level above another write migrate, or the pool that it warms up, alone"
                yield (*path, "route"), text
            if is_told(level):
                yield from _of_random(level, path)


def _of_random(level: Level, path: Path) -> Iterator[Fault]:
    pools: list[tuple[Path, Level | Pool]] = [((*path, "pool", k), pool) for k, pool in enumerate(level.pools)]
    for at, one in [(path, level), *pools]:
        if one.distribution == "random" and len(one.servers) > 1:
            text = "the distribution is random: a write would reach one of the servers that have a copy; write another"
            yield (*at, "distribution"), f"{text} one, or say that the level is read_only"
