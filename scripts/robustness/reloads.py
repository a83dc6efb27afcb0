"""scripts/verify_reloads: no failed request, however often the configuration is reloaded; half of the files are broken.

Prints what was seen; exit status 1 when a request failed, a broken file was taken or a good one refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hyper_proxy.build import state
from scripts.robustness.stage import go_on, in_words, stage, verdict
from tests.front.redis.conftest import Proxy
from tests.kit.clients import Crowd

FAULTS = ('storage = "rediss"', "storage = 7", "strage = 'redis'", "storage = [")


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/verify_reloads", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--reloads", type=int, default=200, help="every second one of a broken file (default 200)")
    parser.add_argument("--clients", type=int, default=50, help="blocking clients (default 50)")
    return parser.parse_args()


def client_of(port: int) -> Callable[[int], Callable[[], None]]:
    """A client that writes and reads its own keys, whose values name them; it never connects a second time."""

    def make_step(number: int) -> Callable[[], None]:
        client = redis.Redis(port=port, socket_timeout=20, retry=Retry(NoBackoff(), 0))
        keys = [f"{number}:{index}" for index in range(8)]

        def step() -> None:
            client.mset({key: f"value of {key}" for key in keys})
            if client.mget(keys) != [f"value of {key}".encode() for key in keys]:
                raise ValueError("a wrong reply")

        return step

    return make_step


def changed(config: str, turn: int) -> str:
    """The file of one reload: broken at every second turn, else with another deadline or number of connections."""
    if turn % 2:
        return config.replace('storage = "redis"', FAULTS[turn // 2 % len(FAULTS)])
    setting = f"timeout = {{ read_ms = {5000 + turn} }}" if turn % 4 else f"connections = {1 + turn // 4 % 3}"
    return f"{config}  {setting}\n"


def reload_over_and_over(proxy: Proxy, reloads: int) -> list[str]:
    """What went wrong with verdicts."""
    faults = []
    for turn in range(reloads):
        proxy.fleet.write(changed(proxy.config, turn))
        verdict = proxy.fleet.reload()
        if verdict.accepted is bool(turn % 2):
            faults.append(f"reload {turn}: {verdict}")
        elif turn % 2 and f"{proxy.fleet.file}:" not in verdict.body["error"]:
            faults.append(f"reload {turn}: no file and line in {verdict.body['error']}")
    return faults


def main() -> int:
    """0 when no request failed."""
    chosen = options()
    print(state())
    began = time.monotonic()
    with stage() as (folder, nodes):
        proxy = Proxy(folder, [node.address for node in nodes])
        with proxy.fleet, Crowd(chosen.clients, client_of(proxy.port)) as crowd:
            go_on(crowd, 10 * chosen.clients)
            faults = reload_over_and_over(proxy, chosen.reloads)
            go_on(crowd, 10 * chosen.clients)
            generation = proxy.fleet.stats()["config"]["generation"]
    seconds = round(time.monotonic() - began)
    print(f"{chosen.reloads} reloads in {seconds} s, {chosen.clients} clients: generation {generation}")
    print(f"requests: {2 * crowd.done}, failed: {len(crowd.failures)}, verdicts that were wrong: {len(faults)}")
    return verdict([*faults, *in_words(crowd.failures)])


if __name__ == "__main__":
    sys.exit(main())
