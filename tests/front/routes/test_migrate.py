"""migrate: keys change their home one by one as time passes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.front.routes.conftest import Routed
from tests.kit.wait import wait_for

SIZES = {"main": 1, "new": 2}
KEYS = [f"key{number}" for number in range(200)]


def _route(begins: datetime, hours: float) -> str:
    return f'{{ migrate = "new", of = "main", begins = {begins.strftime("%Y-%m-%dT%H:%M:%SZ")}, hours = {hours} }}'


def _moved(proxy: Routed) -> set[str]:
    """Write every key once; those that are now in the new pool."""
    client = proxy.client()
    for key in KEYS:
        client.set(key, "x")
    moved = {key for key in KEYS if proxy.kept("new", key)}
    for server in (proxy.server("main", 0), proxy.server("new", 0), proxy.server("new", 1)):
        server.delete(*KEYS) if proxy.kind == "redis" else server.delete_many(KEYS)
    return moved


def test_the_share_that_has_moved_is_that_of_the_time_that_has_passed(routed: Callable[..., Routed]) -> None:
    now = datetime.now(UTC)
    proxy = routed(SIZES, _route(now + timedelta(hours=1), 2))
    assert _moved(proxy) == set()
    shares = {}
    for hours in (0.5, 1, 3):
        proxy.fleet.write(proxy.config(_route(now - timedelta(hours=hours), 2)))
        assert proxy.fleet.reload().accepted
        shares[hours] = _moved(proxy)
    assert 20 <= len(shares[0.5]) <= 80  # a quarter
    assert 60 <= len(shares[1]) <= 140  # half
    assert shares[3] == set(KEYS)
    assert shares[0.5] < shares[1]


def test_it_goes_on_by_itself(routed: Callable[..., Routed]) -> None:
    proxy = routed(SIZES, _route(datetime.now(UTC), 0.0015))  # in some five seconds
    wait_for(lambda: _moved(proxy) == set(KEYS), "all have moved", 20)
