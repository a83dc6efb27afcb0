"""scripts/verify_faults: no wrong reply, whatever happens to the nodes.

A fleet of two workers before three redis-servers. Meanwhile the nodes are killed, frozen, and replaced by servers that
answer garbage, reset in the middle of a reply, send half of one, answer too much, or not at all. Prints what was seen;
exit status 1 when one reply was wrong, or one connection of a client was lost.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from hyper_proxy.build import state
from scripts.robustness.stage import in_words, stage, verdict
from tests.front.redis.conftest import Proxy
from tests.kit import ordeal
from tests.kit.wait import wait_for

LEVEL = "timeout = { connect_ms = 100, read_ms = 150, queue_ms = 150 }\n  backoff = { base_ms = 20, max_ms = 100 }"
POLICIES = {"user": 'on_partial = "error"'}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/verify_faults", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--requests", type=int, default=100_000, help="verified at least (default 100000)")
    parser.add_argument("--times", type=int, default=3, help="that each misfortune happens at least (default 3)")
    parser.add_argument("--clients", type=int, default=20, help="blocking clients (default 20)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of the order of misfortunes")
    return parser.parse_args()


def main() -> int:
    """0 when every reply was right."""
    chosen = options()
    print(f"{state()}; seed {chosen.seed}")
    began = time.monotonic()
    with stage() as (folder, nodes):
        proxy = Proxy(folder, [node.address for node in nodes], POLICIES, LEVEL)
        with proxy.fleet:
            wait_for(lambda: ordeal.all_well(proxy.port), "all nodes answer")
            port, clients, requests = proxy.port, chosen.clients, chosen.requests
            outcome = ordeal.run(port, nodes, clients, requests, chosen.times, chosen.seed)
            restarts = sum(worker["restarts"] for worker in proxy.fleet.stats()["workers"])
    seen = outcome.seen
    print(f"verified requests: {seen['requests']} in {round(time.monotonic() - began)} s")
    print(f"values right: {seen['values']}, nil: {seen['nils']}, errors that name a node: {seen['errors']}")
    print("misfortunes: " + ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.happened.items())))
    print(
        f"wrong replies: {len(outcome.wrong)}, lost connections: {len(outcome.failures)}, workers restarted: {restarts}"
    )
    lost = [f"{restarts} workers restarted"] if restarts else []
    return verdict([*outcome.wrong, *in_words(outcome.failures), *lost])


if __name__ == "__main__":
    sys.exit(main())
