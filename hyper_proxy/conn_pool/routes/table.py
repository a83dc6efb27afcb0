"""The routes whose children all have a place for every key, by their kind: what hands requests on to the children."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyper_proxy.conn_pool.lane import Lane
from hyper_proxy.conn_pool.routes.by_class import ClassLane
from hyper_proxy.conn_pool.routes.failover import FailoverLane
from hyper_proxy.conn_pool.routes.quorum import QuorumLane
from hyper_proxy.conn_pool.routes.route import RouteLane, Setting
from hyper_proxy.conn_pool.routes.shadow import ShadowLane
from hyper_proxy.conn_pool.routes.warm_up import WarmUpLane

# From the lanes of the children to a lane.
PRODUCTS: dict[str, Callable[[Sequence[Lane], Setting], RouteLane]] = {
    "all": QuorumLane,
    "any": QuorumLane,
    "class": ClassLane,
    "eject": FailoverLane,
    "failover": FailoverLane,
    "fastest": QuorumLane,
    "majority": QuorumLane,
    "shadow": ShadowLane,
    "warm_up": WarmUpLane,
}
