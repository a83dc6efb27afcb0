"""A reload gives a level another route while requests are under way on the one before: each gets its own answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.front.routes.conftest import Routed
from tests.kit.clients import Crowd
from tests.kit.wait import wait_for

ROUTES = [
    '{ all = ["main", "b"] }',
    '{ failover = ["main", "b"] }',
    '{ warm_up = "b", of = "main" }',
    '{ shadow = "b", of = "main", compare = true }',
    '{ class = { read = "main", write = { any = ["main", "b"] } } }',
    '{ majority = [{ eject = "main" }, "b"] }',
]
STEPS = 100  # under each route


def test_no_request_is_lost_or_mixed_up(routed: Callable[..., Routed]) -> None:
    proxy = routed({"main": 2, "b": 2}, ROUTES[0])

    def make_step(number: int) -> Callable[[], None]:
        client = proxy.client()
        values = count()

        def step() -> None:
            value = b"%d of %d" % (next(values), number)
            client.set(f"key{number}", value)
            found = client.get(f"key{number}")
            if found != value:
                pytest.fail(f"{found!r} instead of {value!r}")
            assert client.get(f"none{number}") is None

        return step

    with Crowd(6, make_step) as crowd:
        for route in [*ROUTES[1:], ROUTES[0]]:
            proxy.fleet.write(proxy.config(route))
            assert proxy.fleet.reload().accepted, route
            reached = crowd.done + STEPS
            wait_for(lambda reached=reached: crowd.done > reached, f"they go on under {route}", 30)  # type: ignore[misc]
    assert [str(failure) for failure in crowd.failures] == []
