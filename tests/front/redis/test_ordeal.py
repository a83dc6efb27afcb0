"""A share of scripts/verify_faults: whatever happens to the nodes, no client ever gets a wrong reply."""

from __future__ import annotations

from collections.abc import Callable

from tests.front.redis.conftest import Proxy
from tests.kit import ordeal
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

LEVEL = "timeout = { connect_ms = 100, read_ms = 150, queue_ms = 150 }\n  backoff = { base_ms = 20, max_ms = 100 }"


def test_no_wrong_reply_reaches_a_client_whatever_happens_to_the_nodes(
    own: Callable[[Running], Running], start_proxy: Callable[..., Proxy]
) -> None:
    nodes = [own(redis_server()) for _ in range(3)]
    proxy = start_proxy([node.address for node in nodes], None, LEVEL)
    wait_for(lambda: ordeal.all_well(proxy.port), "all nodes answer")
    outcome = ordeal.run(proxy.port, nodes, clients=6, requests=5000, times=1, seed=1)
    assert outcome.wrong == []
    assert outcome.failures == []
    assert set(outcome.happened) == set(ordeal.KINDS)
    assert outcome.seen["values"] > outcome.seen["errors"] > 0
    assert sum(worker["restarts"] for worker in proxy.fleet.stats()["workers"]) == 0
