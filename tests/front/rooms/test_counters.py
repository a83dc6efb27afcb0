"""What an operator sees of the rooms of an instance."""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.cli import ctl_show
from tests.kit.rooms import Site

MIRROR = 'writes = "mirror"\n    folder = "rooms"'
LABELS = ("n0", "n1", "n0@second", "n1@second")


def seen(site: Site, name: str) -> list[int]:
    """A number of each node."""
    return [site.stat(label, name) for label in LABELS]


def states(site: Site) -> list[str]:
    """As `ctl show nodes` says them."""
    found = ctl_show.node_states(site.fleet.stats())
    return [found["shop", label] for label in LABELS]


def test_switches_and_copied_keys_are_counted(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    client = site.client()
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    assert seen(site, "took_over") == [0, 0, 0, 0]
    assert states(site) == ["up", "up", "spare", "spare"]
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    assert seen(site, "took_over") == [0, 0, 1, 1]
    for number in range(40):
        client.set(f"key{number}", "x")
    assert states(site)[2:] == ["up", "up"]
    assert set(states(site)[:2]) <= {"down", "behind"}
    site.revive(0, "freeze")
    site.wait_until_served_by(0)
    assert seen(site, "took_over") == [1, 1, 1, 1]
    copied = seen(site, "copied")
    assert (copied[0] + copied[1], copied[2:]) == (40, [0, 0])
