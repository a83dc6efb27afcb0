"""An operator says which room serves."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.kit.rooms import Site
from tests.kit.wait import wait_for


def pin(site: Site, room: str) -> dict[str, Any]:
    """Order it."""
    status, answer = site.fleet.post("/room", {"instance": "shop", "room": room})
    assert status == 200, answer
    return answer


def test_the_room_that_was_ordered_serves_whatever_happens(build: Callable[..., Site]) -> None:
    site = build("redis")
    client = site.client()
    site.wait_until_served_by(0)
    answer = pin(site, "second")
    assert answer["overrides"]["rooms"][0]["room"] == "second"
    site.wait_until_served_by(1)
    client.set("k", "in the second")
    assert site.fleet.reload().accepted
    site.wait_until_served_by(1)
    site.fleet.kill_worker(0, signal.SIGKILL)
    wait_for(site.fleet.is_ready, "the worker has a successor")
    site.wait_until_served_by(1)
    again = site.client()
    assert again.get("k") == b"in the second"
    site.kill(1, "kill")
    with pytest.raises(redis.RedisError):
        again.get("k")
    pin(site, "auto")
    site.wait_until_served_by(0)
    assert site.client().get("k") is None


def test_a_pin_waits_until_the_room_is_equal(build: Callable[..., Site]) -> None:
    site = build("redis", 'writes = "mirror"\n    folder = "rooms"')
    client = site.client()
    site.wait_until_served_by(0)
    site.kill(1, "freeze")
    site.fleet.wait_log("room.spare_down")
    for index in range(100):
        client.set(f"k{index}", str(index))
    pin(site, "second")
    assert {client.get(f"k{index}") for index in range(100)} == {str(index).encode() for index in range(100)}
    site.revive(1, "freeze")
    site.wait_until_served_by(1)
    assert [client.get(f"k{index}") for index in range(100)] == [str(index).encode() for index in range(100)]


def test_what_can_not_be_pinned_is_said(build: Callable[..., Site]) -> None:
    site = build("redis")
    for body, text in (
        ({"instance": "shop", "room": "third"}, "there is no room 'third': first, second, auto"),
        ({"instance": "stop", "room": "first"}, "there is no instance 'stop'"),
    ):
        status, answer = site.fleet.post("/room", dict(body))
        assert (status, text in answer["error"]) == (422, True), answer
