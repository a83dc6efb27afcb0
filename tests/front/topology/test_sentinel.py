"""Masters under sentinels behind clients that know nothing of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import redis

from tests.front.topology.conftest import Watched
from tests.front.topology.sentinel_kit import Secrets
from tests.front.topology.writers import Writer
from tests.kit.ports import free_port
from tests.kit.wait import wait_for

KEYS = [f"key:{number}" for number in range(100)]


def works(client: Any, key: str) -> bool:
    """Is it served? An error is a right answer while there is no master; a wrong value never is."""
    try:
        value = client.get(key)
    except redis.RedisError:
        return False
    assert value == key.encode(), (key, value)
    return True


def test_keys_are_spread_over_the_masters_by_their_names(watched: Callable[..., Watched]) -> None:
    proxy = watched(("alpha", "beta"))
    client = proxy.client()
    for key in KEYS:
        client.set(key, key)
    masters = [one.client(one.servers[0]) for one in proxy.sentinels.watched.values()]
    counts = [master.dbsize() for master in masters]
    assert min(counts) > 5 and sum(counts) == len(KEYS) == client.dbsize()
    assert client.mget(KEYS) == [key.encode() for key in KEYS] and len(set(client.scan_iter())) == len(KEYS)
    third = proxy.stack.enter_context(redis.Redis(port=proxy.port, db=3))
    assert third.get(KEYS[0]) is None and third.dbsize() == 0
    assert {"alpha", "beta"} <= set(proxy.nodes())
    homes = {key: [master.exists(key) for master in masters] for key in KEYS}
    new = proxy.sentinels.fail_over("beta")
    wait_for(lambda: proxy.sentinels.watched["beta"].client(new).role()[0] == b"master", "it is the master")
    wait_for(lambda: all(works(client, key) for key in KEYS), "all keys are served")
    masters[1] = proxy.sentinels.watched["beta"].client(new)
    assert {key: [master.exists(key) for master in masters] for key in KEYS} == homes


RIGHTS = (
    "&+switch-master +auth +ping +subscribe +sentinel|master +sentinel|get-master-addr-by-name +sentinel|replicas"
)
"""What docs/redis-topologies.md says that a user needs."""


def test_sentinels_have_a_password_of_their_own(watched: Callable[..., Watched]) -> None:
    secrets = Secrets("of-the-masters", "of-everybody", f"watcher on >its-own resetchannels -@all {RIGHTS}")
    own = 'sentinel_username = "watcher"\nsentinel_password = "its-own"'
    proxy = watched(more=f'password = "of-the-masters"\n{own}\n', secrets=secrets)
    client = proxy.client()
    client.set("a", "a")
    switched = proxy.sentinels.fail_over("alpha")
    wait_for(lambda: proxy.sentinels.watched["alpha"].client(switched).role()[0] == b"master", "it is the master")
    wait_for(lambda: works(client, "a"), "it is followed")

    proxy.fleet.write(proxy.config.replace(own, 'sentinel_password = "wrong"'))
    assert proxy.fleet.reload().accepted
    proxy.fleet.wait_log("WRONGPASS")
    assert works(client, "a"), "where the master was it still is"
    _, shown = proxy.fleet.http("GET", "/config")
    assert b"sentinel_password" in shown and b'"wrong"' not in shown and b"its-own" not in shown
    proxy.fleet.write(proxy.config.replace(own, 'sentinel_password = "of-everybody"'))
    assert proxy.fleet.reload().accepted
    proxy.sentinels.fail_over("alpha")
    wait_for(lambda: works(client, "a"), "it is followed with the other password, too")


def test_a_lost_master_is_replaced_by_the_one_that_sentinels_choose(watched: Callable[..., Watched]) -> None:
    proxy = watched()
    client = proxy.client()
    for key in KEYS:
        client.set(key, key)
    assert client.wait(1, 5000) == 1
    proxy.sentinels.master("alpha").kill()
    before = proxy.sentinels.master("alpha")
    wait_for(lambda: proxy.sentinels.master("alpha") is not before, "the sentinels have chosen", 20)
    began = time.monotonic()
    wait_for(lambda: all(works(client, key) for key in KEYS), "all keys are served", 20)
    assert time.monotonic() - began < 5
    assert client.set("more", 1) is True
    new = proxy.sentinels.watched["alpha"].client(proxy.sentinels.master("alpha"))
    assert new.get("more") == b"1"


def test_writes_that_a_demoted_master_refuses_go_to_the_new_one(watched: Callable[..., Watched]) -> None:
    """What it took before it knew of its end is lost, as for every client of sentinels; afterwards nothing is."""
    proxy = watched()
    stop = Event()
    writer = Writer(proxy.port, [f"n:{number}" for number in range(20)], stop)
    old = proxy.sentinels.master("alpha")
    writer.start()
    try:
        wait_for(lambda: writer.count > 5, "it writes")
        proxy.sentinels.fail_over("alpha")
        follower = proxy.sentinels.watched["alpha"].client(old)
        wait_for(lambda: follower.role()[0] == b"slave", "the old one is a replica", 20)
        before = writer.count
        wait_for(lambda: writer.count > before + 20, "it goes on")
    finally:
        stop.set()
        writer.join()
    assert not [fault for fault in writer.faults if "Error" in fault]
    new = proxy.sentinels.watched["alpha"].client(proxy.sentinels.master("alpha"))
    assert new.get("n:0") == proxy.client().get("n:0")


def test_a_write_that_a_replica_refuses_waits_for_the_master(watched: Callable[..., Watched]) -> None:
    """For a moment the server is nobody's master; nothing was done, so it is sent again."""
    proxy = watched()
    client, group = proxy.client(), proxy.sentinels.watched["alpha"]
    server = group.client(group.servers[0])
    assert client.set("key", 1)
    server.replicaof("127.0.0.1", free_port())
    heard: list[object] = []
    writer = Thread(target=lambda: heard.append(client.incr("key")))
    writer.start()
    try:
        wait_for(lambda: server.info("errorstats").get("errorstat_READONLY", {"count": 0})["count"] >= 2, "it refuses")
    finally:
        server.replicaof("no", "one")
        writer.join()
    assert heard == [2] and client.get("key") == b"2"


def test_it_starts_while_a_sentinel_is_down_and_outlives_a_reload(watched: Callable[..., Watched]) -> None:
    proxy = watched()
    client = proxy.client()
    assert client.set("key", "key")
    proxy.sentinels.sentinels[0].kill()
    # Two workers have asked it for its role, and one has served: what a client speaks is another version of RESP.
    wait_for(lambda: proxy.nodes()["alpha"]["connects"] == 3, "its connections are counted")
    proxy.fleet.write(proxy.config.replace("allow =", "dbs = 7\nallow ="))
    assert proxy.fleet.reload().body["summary"] != "the file is unchanged"
    assert works(client, "key")
    wait_for(lambda: proxy.nodes()["alpha"]["by_class"]["read"] == 1, "the read is counted")
    assert proxy.nodes()["alpha"]["connects"] == 3
    proxy.fleet.write(proxy.config.replace("workers = 2", "workers = 3"))
    assert proxy.fleet.reload().accepted
    assert works(proxy.client(), "key")
