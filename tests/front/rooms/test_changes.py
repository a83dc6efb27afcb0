"""Configurations and orders change while a room is away: nobody waits in vain, and what was missed is not forgotten."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial

from tests.front.rooms.test_pin import pin
from tests.kit.rooms import Site, wait_until_equal, writing
from tests.kit.wait import wait_for

MIRROR = 'writes = "mirror"\n    folder = "rooms"'
KEYS = [f"k{index}" for index in range(60)]


def reload(site: Site, options: str, alone: bool = False) -> None:
    """With the rooms as they stand in the site now."""
    site.fleet.write(site.config(options, alone))
    verdict = site.fleet.reload()
    assert verdict.accepted, verdict.body


def missed(site: Site) -> None:
    """The second room does not get what is written."""
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    client = site.client()
    for key in KEYS:
        client.set(key, "old")
    site.kill(1, "freeze")
    for key in KEYS:
        client.set(key, "new")


def test_orders_during_the_switch_leave_nobody_waiting(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    with writing(site, 8) as writers:
        wait_for(lambda: all(writer.steps > 5 for writer in writers), "it is written")
        site.kill(0, "freeze")
        for room in ("second", "auto"):
            pin(site, room)
        site.wait_until_served_by(1)
    site.revive(0, "freeze")
    wait_until_equal(site)


def test_a_copy_goes_on_through_orders(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    pipeline = site.client().pipeline(transaction=False)
    keys = [f"key {index}" for index in range(3000)]
    for key in keys:
        pipeline.set(key, key)
    pipeline.execute()
    site.wait_until_served_by(0)
    site.kill(0, "kill")
    site.wait_until_served_by(1)
    site.revive(0, "kill")
    servers = [site.to(server.port) for server in site.rooms[0]]

    def copied(least: int) -> bool:
        return sum(server.dbsize() for server in servers) > least

    for least in (100, 600, 1500):
        wait_for(partial(copied, least), "keys are copied")
        pin(site, "second")
        pin(site, "auto")
    site.wait_until_served_by(0)
    assert sum(server.dbsize() for server in servers) == len(keys)
    assert site.client().mget(keys) == [key.encode() for key in keys]


def test_rooms_that_change_places_keep_what_they_miss(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    missed(site)
    site.rooms.reverse()
    reload(site, MIRROR)
    site.revive(0, "freeze")
    client = site.client()
    assert {client.get(key) for key in KEYS} == {b"new"}
    site.wait_until_served_by(0)
    assert {client.get(key) for key in KEYS} == {b"new"}
    wait_until_equal(site)


def test_a_room_that_was_left_out_for_a_while_is_copied_whole(build: Callable[..., Site]) -> None:
    site = build("redis", MIRROR)
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    client = site.client()
    for key in KEYS:
        client.set(key, "old")
    reload(site, "", alone=True)
    for key in KEYS:
        client.set(key, "new")
    reload(site, MIRROR)
    site.wait_until_ready(1)
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    assert {client.get(key) for key in KEYS} == {b"new"}


def test_a_server_whose_peer_was_left_out_while_it_served_has_transactions(build: Callable[..., Site]) -> None:
    site = build("redis", 'on_return = "keep"')
    pin(site, "second")
    site.wait_until_served_by(1)
    reload(site, "", alone=True)
    pipeline = site.client().pipeline(transaction=True)
    assert pipeline.set("key", "value").get("key").execute() == [True, b"value"]
    assert [site.stat(f"n{index}", "serving") for index in range(2)] == [site.workers] * 2


def test_an_upgrade_does_not_forget_who_must_be_emptied(build: Callable[..., Site]) -> None:
    site = build("redis", 'on_return = "empty"')
    client = site.client()
    site.wait_until_served_by(0)
    site.wait_until_ready(1)
    for key in KEYS:
        client.set(key, "old")
    site.kill(0, "freeze")
    site.wait_until_served_by(1)
    old = site.fleet.stats()["master"]["pid"]
    site.fleet.send_signal(signal.SIGUSR2)
    wait_for(lambda: site.fleet.stats()["master"]["pid"] != old, "a new master", 20)
    site.revive(0, "freeze")
    site.wait_until_served_by(0)
    again = site.client()
    assert {again.get(key) for key in KEYS} == {None}
