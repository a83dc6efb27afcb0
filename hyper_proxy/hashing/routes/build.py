"""From a level of the configuration to its placement: of its servers, or of all pools that its route leads to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hyper_proxy.config.model import Level, Route
from hyper_proxy.config.table_split import placed
from hyper_proxy.hashing.build import build
from hyper_proxy.hashing.distributions.slots import every_slot
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.routes.by_time import ByTime
from hyper_proxy.hashing.routes.eject import Ejecting
from hyper_proxy.hashing.routes.join import Product
from hyper_proxy.hashing.routes.prefix import ByPrefix

# By kind of route, of those whose children are the parts of a sum; all others are products.
SUMS: dict[str, Callable[[Route, Sequence[Placement]], Placement]] = {
    "migrate": ByTime,
    "prefix": ByPrefix,
}


def build_level(level: Level) -> Placement:
    """The placement of a level. Raises HashingError."""
    levels = level.pool_levels()
    return _build(level.route, levels) if level.route else _of_servers(level)


def _build(route: Route, levels: Mapping[str, Level]) -> Placement:
    if route.kind == "pool":
        return _of_servers(levels[route.pool])
    if route.kind == "eject":
        return Ejecting(levels[route.children[0].pool])
    parts = [_build(child, levels) for child in route.children]
    return SUMS[route.kind](route, parts) if route.kind in SUMS else Product(parts)


def _of_servers(level: Level) -> Placement:
    if level.topology == "cluster":
        return every_slot()
    return build(level.hash, level.distribution, level.hash_tag, placed(level))
