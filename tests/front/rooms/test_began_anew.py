"""A server that begins anew behind an address that refuses nobody: no sign tells it but what the server says itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from threading import Thread

from tests.kit.relay import Relay
from tests.kit.rooms import Site, wait_until_equal
from tests.kit.wait import wait_for

PATIENT = "\n  [instance.level.timeout]\n  read_ms = 10000"
MIRROR = f'writes = "mirror"\n    folder = "rooms"{PATIENT}'
KEYS = [f"k{index}" for index in range(60)]


def begin_anew(site: Site, relays: list[Relay]) -> None:
    """The first room's servers, while clients ask for what they had."""
    found: list[bytes | None] = []
    for relay in relays:
        relay.open.clear()
        relay.accepted = 0
        relay.server.kill()
    wait_for(lambda: all(relay.accepted for relay in relays), "the proxy has connected again")
    client = site.client()
    asking = Thread(target=lambda: found.extend([client.get(key) for key in KEYS for _ in range(10)]))
    asking.start()
    for relay in relays:
        relay.server.start()
        relay.open.set()
    asking.join()
    assert set(found) == {b"value"}


def test_what_it_has_lost_is_read_from_its_peer(build: Callable[..., Site]) -> None:
    with ExitStack() as stack:
        site = build("redis", MIRROR)
        relays = [stack.enter_context(Relay(server)) for server in site.rooms[0]]
        site.stop()
        site.addresses = {relay.server: relay.address for relay in relays}
        site.start(MIRROR)
        site.wait_until_served_by(0)
        site.wait_until_ready(1)
        client = site.client()
        for key in KEYS:
            client.set(key, "value")
        begin_anew(site, relays)
        site.fleet.wait_log("room.switched")
        assert not site.fleet.log_contains("room.doubtful")
        site.wait_until_served_by(0)
        assert client.mget(KEYS) == [b"value"] * len(KEYS)
        wait_until_equal(site)
