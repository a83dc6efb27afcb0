"""Slots that move from server to server while clients read and write their keys."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest
import redis

from tests.front.topology.cluster_kit import Cluster, slot_of
from tests.front.topology.conftest import Proxied
from tests.front.topology.writers import Writer
from tests.kit.wait import wait_for

KEYS_EACH = 40
WRITERS = 4
SLOTS_MOVED = (100, 3000, 5400, 5500, 9000, 16000)


def start_writers(proxy: Proxied, cluster: Cluster, stop: Event) -> list[Writer]:
    """Some, each with keys in all of the slots that will move, and in others."""
    by_slot = {slot: cluster.keys_in(slot, WRITERS * 3) for slot in SLOTS_MOVED}
    writers = []
    for number in range(WRITERS):
        keys = [key for keys in by_slot.values() for key in keys[number * 3 : number * 3 + 3]]
        keys += [f"other:{number}:{index}" for index in range(KEYS_EACH - len(keys))]
        writers.append(Writer(proxy.port, keys, stop))
        writers[-1].start()
    return writers


def test_nothing_fails_and_nothing_is_lost_while_slots_move_under_load(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    cluster, stop = proxy.cluster, Event()
    writers = start_writers(proxy, cluster, stop)
    try:
        new = cluster.add_master()
        wait_for(lambda: min(writer.count for writer in writers) > 5, "all write")
        for target in (new, cluster.masters[0], cluster.masters[1]):
            for slot in SLOTS_MOVED:
                if cluster.owner(slot) is target:
                    continue
                before = min(writer.count for writer in writers)
                cluster.begin_move(slot, target)
                while cluster.move_keys(slot, target, 2):
                    pass
                cluster.end_move(slot, target)
                wait_for(lambda before=before: min(writer.count for writer in writers) > before + 1, "all go on")  # type: ignore[misc]
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [fault for writer in writers for fault in writer.faults] == []
    client = proxy.client()
    for writer in writers:
        assert {client.get(key) for key in writer.keys} == {b"%d" % writer.count}
        heard = client.lrange(f"{{{writer.keys[0]}}}:list", 0, -1)
        assert heard == [b"%d" % number for number in range(1, writer.count + 1)]
    wait_for(lambda: new.address in proxy.nodes(), "the new server is shown")


def test_a_slot_half_moved_serves_its_keys_from_both(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    client, cluster = proxy.client(), proxy.cluster
    keys = cluster.keys_in(700, 20)
    client.mset({key: key for key in keys})
    target = cluster.masters[2]
    cluster.begin_move(700, target)
    assert cluster.move_keys(700, target, 10) == 10
    assert [client.get(key) for key in keys] == [key.encode() for key in keys]
    fresh = cluster.keys_in(700, 21)[-1]
    assert client.set(fresh, 1) and client.incr(fresh) == 2  # is new, so it is made where the slot goes
    assert client.get(f"nothing{{{keys[0]}}}") is None
    with pytest.raises(redis.ResponseError, match=r"TRYAGAIN|rehashing|slot"):
        client.sdiff(f"{{{keys[0]}}}:no", f"{{{keys[0]}}}:neither", keys[0])
    cluster.move_keys(700, target)
    cluster.end_move(700, target)
    assert [client.get(key) for key in keys] == [key.encode() for key in keys]
    assert client.get(fresh) == b"2" and slot_of(fresh) == 700


def test_a_transaction_begins_at_the_new_home_of_its_slot(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    cluster = proxy.cluster
    client = proxy.client()
    key = cluster.keys_in(800, 1)[0]
    assert client.set(key, 1)
    for target in (1, 2):
        cluster.move(800, cluster.masters[target])
        with client.pipeline() as transaction:
            transaction.echo("before")  # waits until it is known where
            transaction.incr(key)
            transaction.incr(key)
            assert transaction.execute() == [b"before", 2 * target, 2 * target + 1]
    cluster.move(800, cluster.masters[0])
    with client.pipeline() as transaction:
        transaction.watch(key)
        cluster.move(800, cluster.masters[1])
        transaction.multi()
        transaction.incr(key)
        with pytest.raises(redis.RedisError, match="begin the transaction again"):
            transaction.execute()
    assert client.get(key) == b"5"
    assert client.incr(key) == 6


def test_what_was_watched_before_its_slot_moved_counts_as_changed(proxied: Callable[..., Proxied]) -> None:
    """A later WATCH follows the slot, to a server that knows nothing of the first one."""
    proxy = proxied()
    cluster = proxy.cluster
    client, rival = proxy.client(), proxy.client()
    key, other = cluster.keys_in(800, 2)
    with client.pipeline() as transaction:
        transaction.watch(key)
        cluster.move(800, cluster.masters[1])
        assert rival.set(key, "theirs")
        transaction.watch(other)
        transaction.multi()
        transaction.set(key, "mine")
        with pytest.raises(redis.WatchError):
            transaction.execute()
    assert client.get(key) == b"theirs"


def test_who_waits_and_who_begins_a_transaction_follow_the_slot(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    cluster = proxy.cluster
    first, second = proxy.client(), proxy.client()
    key = cluster.keys_in(800, 1)[0]
    assert first.set(key, 1)
    with first.pipeline() as transaction:
        transaction.incr(key)
        assert transaction.execute() == [2]  # its connection is kept
    cluster.move(800, cluster.masters[1])
    with first.pipeline() as transaction:
        transaction.watch(key)
        transaction.multi()
        transaction.incr(key)
        assert transaction.execute() == [3]
    cluster.move(800, cluster.masters[2])
    second.rpush(f"{{{key}}}:list", 7)
    assert first.blpop(f"{{{key}}}:list", 5) == (f"{{{key}}}:list".encode(), b"7")
