"""all, majority, any, fastest: every pool gets the request; the kinds differ in what makes it a success."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from tests.front.routes.conftest import READ_MS, Routed
from tests.kit.wait import wait_for

SIZES = {"main": 1, "b": 1, "c": 1}
NEEDED = {"all": 3, "majority": 2, "any": 1, "fastest": 1}


def _route(how: str) -> str:
    return f'{{ {how} = ["main", "b", "c"] }}'


def _outcome(client: Any, key: str) -> str:
    try:
        client.set(key, "x")
    except Exception as error:  # noqa: BLE001  each client has its own
        return str(error)
    return "stored"


@pytest.mark.parametrize("how", NEEDED)
def test_every_pool_is_written(routed: Callable[..., Routed], how: str) -> None:
    proxy = routed(SIZES, _route(how))
    proxy.client().set("key", "value")
    wait_for(lambda: all(proxy.kept(pool, "key") == b"value" for pool in SIZES), "every pool has it")


@pytest.mark.parametrize("how", NEEDED)
def test_so_many_pools_must_succeed(routed: Callable[..., Routed], how: str) -> None:
    proxy = routed(SIZES, _route(how))
    client = proxy.client()
    client.set("key", "value")
    for down, pool in enumerate(SIZES, 1):
        proxy.pools[pool][0].kill()
        told = _outcome(client, "key")
        assert (told == "stored") == (len(SIZES) - down >= NEEDED[how]), (pool, told)
    assert "instance 'shop' node '" in told


@pytest.mark.parametrize("how", ["majority", "fastest"])
def test_a_slow_pool_is_not_waited_for(routed: Callable[..., Routed], how: str) -> None:
    proxy = routed(SIZES, _route(how))
    proxy.fleet.write(proxy.config(_route(how)).replace(f"read_ms = {READ_MS}", "read_ms = 5000"))
    assert proxy.fleet.reload().accepted
    client = proxy.client()
    client.set("key", "value")
    proxy.pools["main"][0].freeze()
    try:
        began = monotonic()
        assert _outcome(client, "key") == "stored"
        assert monotonic() - began < 4.0  # the deadline of the frozen one is five seconds
    finally:
        proxy.pools["main"][0].thaw()


def test_an_error_that_a_server_answers_is_a_failure(routed: Callable[..., Routed], kind: str) -> None:
    proxy = routed(SIZES, _route("all"))
    client = proxy.client()
    client.set("key", "1")
    assert client.incr("key", 1) == 2
    proxy.to(proxy.pools["b"][0].port).set("key", "no number")
    with pytest.raises(Exception, match=r"(?i)not an integer|non-numeric"):
        client.incr("key", 1)
    assert proxy.kept("c", "key") == b"3"


@pytest.mark.parametrize("how", ["majority", "fastest"])
@pytest.mark.parametrize("kind", ["redis"], indirect=True)
def test_a_pool_that_reads_nothing_is_not_waited_for(routed: Callable[..., Routed], kind: str, how: str) -> None:
    """What waits for it fills its buffers and then its queue; the others have room."""
    proxy = routed(SIZES, _route(how))
    proxy.fleet.write(proxy.config(_route(how)).replace(f"read_ms = {READ_MS}", "read_ms = 9000, queue_ms = 9000")
                      .replace("backoff =", 'max_pending_bytes = "64KB"\n  backoff ='))  # fmt: skip
    assert proxy.fleet.reload().accepted
    client = proxy.client()
    client.set("key", "value")
    proxy.pools["c"][0].freeze()
    try:
        began = monotonic()
        for _ in range(20):
            client.set("key", "x" * 1_000_000)
        assert client.get("key") == b"x" * 1_000_000
        assert monotonic() - began < 8.0  # what waits for the frozen one waits for nine seconds
    finally:
        proxy.pools["c"][0].thaw()
