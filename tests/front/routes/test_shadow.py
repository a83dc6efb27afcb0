"""shadow: one pool serves, another sees the same requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.front.routes.conftest import Routed
from tests.kit.wait import wait_for

SIZES = {"main": 1, "test": 1}


def _errors(proxy: Routed) -> dict[str, Any]:
    """What is counted of the shadow's server, over all workers."""
    found: dict[str, Any] = proxy.fleet.stats()["instances"]["shop"]["nodes"]["test0"]["errors"]
    return found


def test_the_shadow_gets_what_is_served(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, '{ shadow = "test", of = "main" }')
    proxy.client().set("key", "value")
    assert proxy.kept("main", "key") == b"value"
    wait_for(lambda: proxy.kept("test", "key") == b"value", "the shadow has it")


def test_a_fraction_of_the_requests(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, '{ shadow = "test", of = "main", fraction = 0.2 }')
    client = proxy.client()
    keys = [f"key{number}" for number in range(500)]
    for key in keys:
        client.set(key, "value")
    last = proxy.to(proxy.pools["test"][0].port)
    seen = sum(last.get(key) is not None for key in keys)
    assert 50 <= seen <= 160  # 100 are to be expected; this far off is one chance in millions


def test_nobody_waits_for_a_shadow_that_hangs_or_is_gone(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, '{ shadow = "test", of = "main", compare = true }')
    client = proxy.client()
    client.set("key", "value")
    proxy.pools["test"][0].freeze()
    try:
        assert client.get("key") == b"value"
    finally:
        proxy.pools["test"][0].thaw()
    proxy.pools["test"][0].kill()
    assert [client.get("key") for _ in range(20)] == [b"value"] * 20


def test_differences_are_counted_and_logged(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, '{ shadow = "test", of = "main", compare = true }')
    client = proxy.client()
    client.set("key", "value")
    assert client.get("key") == b"value"
    assert "differs" not in _errors(proxy)
    proxy.to(proxy.pools["test"][0].port).set("key", "another")
    assert client.get("key") == b"value"
    wait_for(lambda: _errors(proxy).get("differs") == 1, "the difference is counted")
    proxy.fleet.wait_log("shadow.differs instance=shop node=main0 shadow=test0")
