"""Reading `route`: a tree that says which of a level's pools a request goes to.

    route = "cold"                                          a pool by its name; "main" is the level's own `servers`
    route = { prefix = { "user:" = "users", "" = "main" } }
    route = { failover = ["main", { prefix = { "" = "cold" } }], rate = 50 }

A kind of route is one row of ROUTES here. One whose children each hold a part of the keys (a SUM) has a placement in
hyper_proxy/hashing/routes; one whose children all have a place for every key (a PRODUCT) stands in the place of their
servers, in hyper_proxy/conn_pool/routes, or conn_pool/moving where keys move.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import product
from math import prod
from typing import Any

from hyper_proxy.config.checks import Integer, Moment, Number, Switch
from hyper_proxy.config.model import MAIN, Level, Route, Server
from hyper_proxy.config.notes import suggest
from hyper_proxy.config.place import REQUIRED, Bad, Kind, Place, wrong_type
from hyper_proxy.config.table_split import placed, server_at

MAX_DEPTH = 8
MAX_SHARDS = 16384
"""A product has a shard for each combination of its children's; every client keeps a list of that length."""


BLANK_ROUTE = Route("pool", pool=MAIN)
"""Stands in for one that is faulty, which has been noted."""


class Shape(Enum):
    """How the children of a route are written."""

    MAPPING = "a table of names and routes"
    LIST = "a list of two or more routes"
    PAIR = "a route, with the one that is served in `of`"
    POOL = "the name of a pool"


class Join(Enum):
    """What the children are to each other."""

    SUM = "each key belongs to one child"
    PRODUCT = "each key has a place in every child"


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A kind of route. names: the only ones a MAPPING may use, () for any text; options: kind and default by key."""

    shape: Shape
    join: Join
    help: str
    names: tuple[str, ...] = ()
    options: Mapping[str, tuple[Kind, object]] = field(default_factory=dict)


ROUTES: dict[str, RouteRow] = {
    "prefix": RouteRow(
        Shape.MAPPING, Join.SUM, "by the longest prefix that the key begins with; \"\" takes all other keys"
    ),
    "failover": RouteRow(
        Shape.LIST, Join.PRODUCT,
        "the first; where it fails, the next: reads and writes that may be repeated, and whatever was not sent",
        options={"rate": (Integer(0, 1_000_000), 0)},
    ),
    "eject": RouteRow(
        Shape.POOL, Join.PRODUCT,
        "this pool; where a server fails, its keys go to where they would be without it",
        options={"rate": (Integer(0, 1_000_000), 0)},
    ),
    "class": RouteRow(
        Shape.MAPPING, Join.PRODUCT, "reads to one, all other commands to another", names=("read", "write")
    ),
    "shadow": RouteRow(
        Shape.PAIR, Join.PRODUCT,
        "`of` serves; this one sees a fraction of the requests, too, and nobody waits for it",
        options={"fraction": (Number(0, 1), 1.0), "compare": (Switch(), False)},
    ),
    "all": RouteRow(Shape.LIST, Join.PRODUCT, "all are asked, and all must succeed"),
    "majority": RouteRow(Shape.LIST, Join.PRODUCT, "all are asked; answered when more than half have succeeded"),
    "any": RouteRow(Shape.LIST, Join.PRODUCT, "all are asked and waited for; one success is enough"),
    "fastest": RouteRow(Shape.LIST, Join.PRODUCT, "all are asked; answered at the first success"),
    "warm_up": RouteRow(
        Shape.PAIR, Join.PRODUCT, "`of` is a cold cache; what reads miss there is fetched from this one and kept"
    ),
    "migrate": RouteRow(
        Shape.PAIR, Join.SUM,
        "keys go from `of` to this one, one by one, in `hours` from `begins` on; nothing is copied",
        options={"begins": (Moment(), REQUIRED), "hours": (Number(0.001, 10_000, "a number of hours"), REQUIRED)},
    ),
    "move": RouteRow(
        Shape.PAIR, Join.PRODUCT,
        "keys move from `of` to this one from `begins` on, each before it is used; from `back` on they return",
        options={"begins": (Moment(), REQUIRED), "back": (Moment(), 0.0)},
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RouteRule:
    """A pool's name or a table of toml."""

    accepts: str = 'the name of a pool, or a table with one of the routes of docs/routes.md'

    def read(self, value: object, place: Place) -> Route:
        return _read(value, place, ())


def _read(value: object, place: Place, at: tuple[str | int, ...]) -> Route:
    if len(at) > 2 * MAX_DEPTH:
        raise Bad("HP106", f"routes stand in each other more than {MAX_DEPTH} deep")
    if isinstance(value, str):
        return Route("pool", pool=value)
    if not isinstance(value, dict):
        place.bad(wrong_type(value, "the name of a pool, or a table that is a route,"), *at)
        return BLANK_ROUTE
    kinds = [key for key in value if key in ROUTES]
    if len(kinds) != 1:
        wanted = f"one of {', '.join(ROUTES)}"
        said = f"{' and '.join(kinds)} stand side by side"
        if not kinds:
            said = "none of them stands here" + next(filter(None, (suggest(key, ROUTES) for key in value)), "")
        place.bad(Bad("HP106", f"a route has {wanted}; {said}"), *at)
        return BLANK_ROUTE
    kind = kinds[0]
    row = ROUTES[kind]
    allowed = [kind, *row.options, *(("of",) if row.shape is Shape.PAIR else ())]
    for key in value:
        if key not in allowed:
            place.bad(Bad("HP104", f"unknown key in a {kind} route{suggest(key, allowed)}"), *at, key)
    names, children = _children(kind, row, value, place, at)
    options = tuple((key, _option(key, row, value, place, at)) for key in row.options)
    return Route(kind, tuple(children), names=tuple(names), options=options)


def _children(
    kind: str, row: RouteRow, value: dict[str, Any], place: Place, at: tuple[str | int, ...]
) -> tuple[list[str], list[Route]]:
    """The names of the children, where they have some, and the children."""
    inner = value[kind]
    if row.shape is Shape.PAIR:
        if "of" not in value:
            place.bad(Bad("HP107", f"of is missing: the route that a {kind} route serves"), *at)
            return [], [BLANK_ROUTE] * 2
        return [], [_read(value["of"], place, (*at, "of")), _read(inner, place, (*at, kind))]
    if row.shape is Shape.POOL:
        if not isinstance(inner, str):
            place.bad(Bad("HP105", f"{kind} is {row.shape.value}"), *at, kind)
        return [], [Route("pool", pool=inner) if isinstance(inner, str) else BLANK_ROUTE] * 2
    if row.shape is Shape.LIST:
        if not isinstance(inner, list) or len(inner) < 2:
            place.bad(Bad("HP105", f"{kind} is {row.shape.value}"), *at, kind)
            return [], [BLANK_ROUTE] * 2
        return [], [_read(child, place, (*at, kind, index)) for index, child in enumerate(inner)]
    if not isinstance(inner, dict) or not inner:
        place.bad(Bad("HP105", f"{kind} is {row.shape.value}"), *at, kind)
        return [""], [BLANK_ROUTE]
    for name in inner:
        if row.names and name not in row.names:
            place.bad(Bad("HP104", f"'{name}' is none of {', '.join(row.names)}{suggest(name, row.names)}"), *at, kind)
    for name in row.names:
        if name not in inner:
            place.bad(Bad("HP107", f"'{name}' is missing: a {kind} route has {' and '.join(row.names)}"), *at, kind)
    return list(inner), [_read(child, place, (*at, kind, name)) for name, child in inner.items()]


def _option(key: str, row: RouteRow, value: dict[str, Any], place: Place, at: tuple[str | int, ...]) -> object:
    kind, default = row.options[key]
    try:
        if key in value:
            return kind.read(value[key], place)
        if default is REQUIRED:
            place.bad(Bad("HP107", f"{key} is missing: {kind.accepts}"), *at)
    except Bad as bad:
        place.bad(bad, *at, key)
    return 1.0 if default is REQUIRED else default  # the file is refused, but rules go on and want a number


def all_routes(route: Route) -> Iterator[Route]:
    """A route and all that stand in it."""
    yield route
    for child in route.children:
        yield from all_routes(child)


def home_of(route: Route, read: bool = False) -> int:
    """The index of the child that has what one client alone talks about, and all keys: where writes go, or reads do."""
    return route.names.index("read" if read else "write") if route.kind == "class" else 0


def home_pools(route: Route) -> tuple[str, ...]:
    """The pools that have every key, all together: where keys are counted and walked."""
    if route.kind == "pool":
        return (route.pool,)
    apart = ROUTES[route.kind].join is Join.SUM or route.kind == "move"
    served = route.children if apart else [route.children[home_of(route)]]
    return tuple(dict.fromkeys(name for child in served for name in home_pools(child)))


@dataclass(frozen=True, slots=True)
class Spot:
    """What stands at one shard of a level: `server` is asked first by writes, `reader` by reads, both empty where that
    is found out; `route` says what may become of that, in words."""

    server: Server
    reader: Server
    route: str = ""


REDIS_SLOTS = 16384


def spots(level: Level) -> list[Spot]:
    """The spots of a level by shard. The one place that says how shards of routes are numbered: those of a SUM one
    child after the other; those of a PRODUCT with the last child's running fastest."""
    if level.topology == "cluster":
        return [_told(f"slot {slot}: the cluster is asked which server has it") for slot in range(REDIS_SLOTS)]
    if level.topology == "sentinel":
        return [_told(f"the sentinels are asked where the master '{name}' is") for name in level.masters]
    return list(_spots(level.route or Route("pool", pool=MAIN), level.pool_levels()))


def _spots(route: Route, levels: Mapping[str, Level]) -> Iterator[Spot]:
    if route.kind == "pool":
        level = levels[route.pool]
        yield from (_spot(level, server_at(level, shard)) for shard in range(len(placed(level))))
    elif ROUTES[route.kind].join is Join.SUM:
        for child in route.children:
            yield from _spots(child, levels)
    else:
        for combined in product(*(list(_spots(child, levels)) for child in route.children)):
            names = [_said(spot) for spot in combined]
            said = f"{route.kind} of {', '.join(names)}"
            if route.kind == "move":
                said = f"moves from {names[0]} to {names[1]}" if len(set(names)) > 1 else f"stays at {names[0]}"
            elif route.names:
                each = (f"{name} at {at}" for name, at in zip(route.names, names, strict=True))
                said = f"{route.kind}: {', '.join(each)}"
            yield Spot(combined[home_of(route)].server, combined[home_of(route, read=True)].reader, said)


def _spot(level: Level, at: int) -> Spot:
    server = level.servers[at]
    if not level.peers:
        return Spot(server, server)
    peer = level.peers[at]
    return Spot(server, server, f"in the second room {peer.label} ({peer.address})")


def _told(who: str) -> Spot:
    return Spot(Server(), Server(), who)


def _said(spot: Spot) -> str:
    return f"({spot.route})" if spot.route else spot.server.label


def shard_count(route: Route, levels: Mapping[str, Level]) -> int:
    """How many shards a route has."""
    if route.kind == "pool":
        return len(placed(levels[route.pool]))
    counts = [shard_count(child, levels) for child in route.children]
    return sum(counts) if ROUTES[route.kind].join is Join.SUM else prod(counts)
