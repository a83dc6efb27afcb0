"""The routes whose children all have a place for every key, by their kind: what hands requests on to the children."""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.conn_pool.routes.failover import FailoverLane
from hyper_proxy.conn_pool.routes.route import RouteLane

# From the lanes of the children and the first child's server to a lane.
PRODUCTS: dict[str, Callable[..., RouteLane]] = {
    "failover": FailoverLane,
}
