"""What a level may say of its pools and its route: what leads nowhere or to too much (HP214), or is unused (HP406)."""

from __future__ import annotations

from collections.abc import Iterator

from hyper_proxy.config.model import MAIN, Level, Route
from hyper_proxy.config.notes import Path, show_path, suggest
from hyper_proxy.config.routes import BLANK_ROUTE, MAX_SHARDS, ROUTES, Shape, all_routes, shard_count

Fault = tuple[Path, str]


def route_faults(level: Level, path: Path) -> Iterator[Fault]:
    """Of the names of pools, and of where the route leads (HP214)."""
    first: dict[str, int] = {}
    for i, pool in enumerate(level.pools):
        at: Path = (*path, "pool", i, "name")
        if pool.name == MAIN:
            yield at, "'main' is the name of the level's own servers"
        elif first.setdefault(pool.name, i) != i:
            yield at, f"'{pool.name}' is already the name of {show_path((*path, 'pool', first[pool.name]))}"
    if level.route is None:
        return
    for kind, twice in _repeats(level.route):
        what = f"'{twice.pool}'" if twice.kind == "pool" else f"the same {twice.kind} route"
        yield (*path, "route"), f"{what} stands twice in {kind}, where once is enough"
    unknown = level.route.pools - _known(level)
    for name in sorted(unknown):
        yield (*path, "route"), f"there is no pool '{name}'{suggest(name, _known(level))}"
    shards = 0 if unknown else shard_count(level.route, level.pool_levels())
    if shards > MAX_SHARDS:
        yield (*path, "route"), f"its pools make {shards} combinations of servers, more than {MAX_SHARDS}"


def unused_pools(level: Level, path: Path) -> Iterator[Fault]:
    """The pools that the route does not lead to (HP406); nothing as long as it leads nowhere, or may not be there."""
    used = level.route.pools if level.route else frozenset((MAIN,))
    faulty = level.route is not None and any(route is BLANK_ROUTE for route in all_routes(level.route))
    if faulty or level.is_found_out or used - _known(level):
        return
    for i, pool in enumerate(level.pools):
        if pool.name not in used:
            yield (*path, "pool", i), f"no request goes to '{pool.name}': it is not in the route of the level"
    if MAIN not in used:
        yield (*path, "servers"), "no request goes there: the pool 'main' is not in the route of the level"


def _repeats(level_route: Route) -> Iterator[tuple[str, Route]]:
    """What stands more than once in a route; of those that move keys move_rules.py tells."""
    for route in all_routes(level_route):
        if route.kind in ROUTES and ROUTES[route.kind].shape in (Shape.LIST, Shape.PAIR) and route.kind != "move":
            children = [child for child in route.children if child is not BLANK_ROUTE]
            yield from ((route.kind, child) for child in dict.fromkeys(children) if children.count(child) > 1)


def _known(level: Level) -> frozenset[str]:
    return frozenset((MAIN, *(pool.name for pool in level.pools)))
