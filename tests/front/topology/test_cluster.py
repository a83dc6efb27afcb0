"""A redis cluster behind clients that know nothing of it."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.front.topology.cluster_kit import config
from tests.front.topology.conftest import Proxied
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for


def test_keys_of_all_slots_are_served_and_are_where_the_cluster_has_them(shared: Proxied) -> None:
    client = shared.client()
    values = {f"key:{number}": f"value:{number}".encode() for number in range(300)}
    for key, value in values.items():
        client.set(key, value)
    assert client.mget(list(values)) == list(values.values())
    cluster = shared.stack.enter_context(redis.RedisCluster(host="127.0.0.1", port=shared.cluster.masters[0].port))
    assert [cluster.get(key) for key in values] == list(values.values())
    counts = [node.client.dbsize() for node in shared.cluster.masters]
    assert all(counts) and sum(counts) == len(values) == client.dbsize()
    assert sorted(client.scan_iter(count=7)) == sorted(key.encode() for key in values)
    assert client.mset(dict.fromkeys(values, "new")) is True
    assert client.exists(*values) == len(values) and set(client.mget(list(values))) == {b"new"}
    assert client.delete(*values) == len(values) and client.dbsize() == 0


def test_all_servers_are_shown_though_two_are_listed(shared: Proxied) -> None:
    addresses = {node.address for node in shared.cluster.nodes}
    wait_for(lambda: set(shared.nodes()) == addresses, "all servers are known")


def test_commands_on_several_keys_need_one_slot(shared: Proxied) -> None:
    client = shared.client()
    client.sadd("{tag}:a", 1, 2, 3)
    client.sadd("{tag}:b", 2, 3, 4)
    assert client.sinter("{tag}:a", "{tag}:b") == {b"2", b"3"}
    assert client.rename("{tag}:a", "{tag}:c") is True
    with pytest.raises(redis.ResponseError, match="same slot"):
        client.sinter("{tag}:a", "other")
    assert client.eval("return redis.call('SCARD', KEYS[1])", 1, "{tag}:c") == 3


def test_transactions_and_waiting_clients_are_served_by_the_master_of_the_slot(shared: Proxied) -> None:
    client = shared.client()
    for number in range(20):
        with client.pipeline() as transaction:
            transaction.watch(f"{{{number}}}:n")
            transaction.multi()
            transaction.incr(f"{{{number}}}:n")
            transaction.rpush(f"{{{number}}}:list", number)
            assert transaction.execute() == [1, 1]
        assert client.blpop(f"{{{number}}}:list", 5) == (b"{%d}:list" % number, b"%d" % number)


def test_a_message_reaches_each_listener_once(shared: Proxied) -> None:
    listeners = [shared.client().pubsub() for _ in range(6)]  # at all of the masters
    for listener in listeners:
        listener.subscribe("news")
        assert listener.get_message(timeout=5)["type"] == "subscribe"
    publisher = shared.client()
    for number in range(5):
        publisher.publish("news", number)
    for listener in listeners:
        heard = [listener.get_message(timeout=5)["data"] for _ in range(5)]
        assert heard == [b"%d" % number for number in range(5)]
        assert listener.get_message(timeout=0.2) is None


def test_there_is_one_database(shared: Proxied) -> None:
    client = shared.client()
    assert client.execute_command("SELECT", 0)
    with pytest.raises(redis.ResponseError, match="DB index is out of range"):
        client.execute_command("SELECT", 1)


def test_commands_for_all_go_to_the_masters(shared: Proxied) -> None:
    client = shared.client()
    digest = client.script_load("return 7")
    for number in range(30):
        client.set(f"key:{number}", number)
        assert client.evalsha(digest, 1, f"key:{number}") == 7
    assert len(client.keys()) == 30
    assert client.wait(1, 1000) == 1
    assert client.flushall() is True
    assert [node.client.dbsize() for node in shared.cluster.masters] == [0, 0, 0]


def test_a_reload_keeps_what_is_known_and_the_connections(shared: Proxied) -> None:
    client = shared.client()
    keys = [str(number) for number in range(100)]
    client.mset(dict.fromkeys(keys, "value"))

    def connections(command: str) -> set[tuple[int, str]]:
        """Of the masters, those whose last command it was."""
        rows = [(node.port, row) for node in shared.cluster.masters for row in node.client.client_list()]
        return {(port, row["id"]) for port, row in rows if row["cmd"] == command}

    before = connections("mset")
    shared.fleet.write(shared.config.replace("allow =", "dbs = 7\nallow ="))
    assert shared.fleet.reload().body["summary"] != "the file is unchanged"
    assert client.mget(keys) == [b"value"] * len(keys)
    assert connections("mget") == before and len(before) >= 3


def test_servers_that_are_no_cluster_are_refused_by_name(tmp_path: Path) -> None:
    with ExitStack() as stack:
        servers = [stack.enter_context(redis_server()) for _ in range(2)]
        port = free_port()
        stack.enter_context(Fleet(config(', '.join(f'"{server.address}"' for server in servers), port), tmp_path))
        client = stack.enter_context(redis.Redis(port=port))
        with pytest.raises(redis.ResponseError, match=r"127\.0\.0\.1.*no server of a cluster"):
            client.set("key", "value")
        assert [stack.enter_context(redis.Redis(port=server.port)).dbsize() for server in servers] == [0, 0]
