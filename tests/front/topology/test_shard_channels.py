"""Shard channels of a cluster, to clients that know of no slots."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.front.topology.cluster_kit import Cluster, Node, config, slot_of
from tests.front.topology.conftest import Proxied
from tests.front.topology.liars import Seed
from tests.kit.fakes.redis import array, bulk
from tests.kit.fleet import COMMAND, Fleet
from tests.kit.ports import free_port
from tests.kit.sockets import unread
from tests.kit.wait import wait_for

CHANNELS = [f"channel:{number}" for number in range(12)]


def told(listener: Any) -> tuple[str, str | None, Any]:
    """The next message: what kind, of which channel, and what it says."""
    message = listener.get_message(timeout=5)
    assert message is not None, "nothing has come"
    channel = message["channel"]
    return message["type"], channel.decode() if channel is not None else None, message["data"]


def neighbours(cluster: Cluster) -> tuple[list[str], Node, Node]:
    """Three channels of one master, in slots of their own; that master, and another one."""
    home = cluster.owner(slot_of(CHANNELS[0]))
    names = [name for name in CHANNELS if cluster.owner(slot_of(name)) is home][:3]
    assert len({slot_of(name) for name in names}) == 3
    return names, home, next(one for one in cluster.masters if one is not home)


def give_away(cluster: Cluster, stack: ExitStack, name: str, target: Node) -> Callable[[], None]:
    """Call to move the channel's slot to `target`. Its master may stand still: it hears of it when it goes on.

    Not before it stands still, where it matters what it hears first: the target tells all others at once.
    """
    slot = slot_of(name)
    source = cluster.owner(slot)
    cluster.begin_move(slot, target)
    connection = source.client.connection_pool.get_connection()
    stack.callback(source.client.connection_pool.release, connection)
    stack.callback(connection.read_response)

    def move() -> None:
        target.ask("CLUSTER SETSLOT", slot, "NODE", target.id)
        connection.send_command("CLUSTER", "SETSLOT", slot, "NODE", target.id)

    return move


def set_on_its_way(proxy: Proxied, stack: ExitStack, name: str, source: Node, target: Node) -> None:
    """The channel has left the one, and waits for an answer of the other."""
    move = give_away(proxy.cluster, stack, name, target)
    source.server.freeze()
    move()
    target.server.freeze()
    source.server.thaw()
    wait_for(lambda: unread(target.port) > 0, "it is on its way")


def connections(*masters: Node) -> int:
    """On which somebody listens to shard channels."""
    rows = [row for one in masters for row in one.client.client_list()]
    return sum(int(row["ssub"]) > 0 or "subscribe" in row["cmd"] for row in rows)


@pytest.mark.parametrize("protocol", [2, 3])
def test_channels_of_many_slots_are_heard_over_one_connection(shared: Proxied, protocol: int) -> None:
    client = shared.client()
    listener = shared.client(protocol=protocol).pubsub()
    listener.ssubscribe(*CHANNELS)
    assert [told(listener) for _ in CHANNELS] == [("ssubscribe", name, at) for at, name in enumerate(CHANNELS, 1)]
    listener.subscribe("news")
    assert told(listener)[:2] == ("subscribe", "news")
    for name in CHANNELS:
        assert client.spublish(name, f"to {name}") == 1
        assert told(listener) == ("smessage", name, f"to {name}".encode())
    client.publish("news", "x")
    assert told(listener) == ("message", "news", b"x")
    assert client.spublish("news", "y") == 0
    homes = [one.ask("PUBSUB SHARDCHANNELS") for one in shared.cluster.masters]
    assert sum(map(len, homes)) == len(CHANNELS) and min(map(len, homes)) > 0, "at all masters"

    listener.sunsubscribe(CHANNELS[0])
    assert told(listener) == ("sunsubscribe", CHANNELS[0], len(CHANNELS) - 1)
    assert client.spublish(CHANNELS[0], "nobody") == 0
    listener.sunsubscribe()
    left = [told(listener) for _ in CHANNELS[1:]]
    assert [row[2] for row in left] == list(reversed(range(len(CHANNELS) - 1)))
    assert {row[1] for row in left} == set(CHANNELS[1:])
    listener.unsubscribe()
    assert told(listener)[:2] == ("unsubscribe", "news")
    assert listener.connection is not None
    listener.close()


def test_listeners_go_with_their_slot_and_are_not_told(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    client = proxy.client()
    listener = proxy.client().pubsub()
    name = CHANNELS[0]
    listener.ssubscribe(name)
    assert told(listener) == ("ssubscribe", name, 1)
    home = next(at for at, one in enumerate(proxy.cluster.masters) if one.ask("PUBSUB SHARDCHANNELS"))
    for step in (1, 2, 3):
        proxy.cluster.move(slot_of(name), proxy.cluster.masters[(home + step) % 3])
        wait_for(lambda step=step: client.spublish(name, f"{step}") == 1, "it listens at the new home")  # type: ignore[misc]
        assert told(listener) == ("smessage", name, f"{step}".encode())
        wait_for(lambda: connections(*proxy.cluster.masters) == 1, "nobody listens at the old one")
    late = proxy.client().pubsub()
    late.ssubscribe(name)
    assert told(late) == ("ssubscribe", name, 1)
    for server in proxy.cluster.masters:
        server.server.kill()
    with pytest.raises(redis.RedisError):  # it is closed, and redis-py tries once more in vain
        wait_for(lambda: listener.get_message(timeout=1), "it is told")


def test_a_slot_that_leaves_is_not_taken_for_the_answer_to_a_request(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    (leaving, wanted, _), home, target = neighbours(proxy.cluster)
    client, listener = proxy.client(), proxy.client().pubsub()
    listener.ssubscribe(leaving)
    assert told(listener) == ("ssubscribe", leaving, 1)
    with ExitStack() as stack:
        move = give_away(proxy.cluster, stack, leaving, target)
        home.server.freeze()
        move()
        listener.ssubscribe(wanted)
        wait_for(lambda: unread(home.port) > 1, "both are under way")
        home.server.thaw()
    assert told(listener) == ("ssubscribe", wanted, 2)
    for name in (leaving, wanted):
        wait_for(lambda name=name: client.spublish(name, "x") == 1, "it listens")  # type: ignore[misc]
        assert told(listener) == ("smessage", name, b"x")


def test_channels_are_left_while_the_slot_of_one_leaves(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    names, home, target = neighbours(proxy.cluster)
    client, listener = proxy.client(), proxy.client().pubsub()
    listener.ssubscribe(*names)
    assert [told(listener)[0] for _ in names] == ["ssubscribe"] * 3
    with ExitStack() as stack:
        move = give_away(proxy.cluster, stack, names[0], target)
        home.server.freeze()
        move()
        listener.sunsubscribe(*names[:2])
        wait_for(lambda: unread(home.port) > 1, "both are under way")
        home.server.thaw()
    assert [told(listener) for _ in range(2)] == [("sunsubscribe", names[0], 2), ("sunsubscribe", names[1], 1)]
    assert [client.spublish(name, "x") for name in names] == [0, 0, 1]
    assert told(listener) == ("smessage", names[2], b"x")


def test_a_server_says_late_that_a_slot_is_elsewhere(tmp_path: Path) -> None:
    """It took the channel back when it was asked to let it go, and the next request is on its way already."""
    with ExitStack() as stack:
        seed = stack.enter_context(Seed())
        for word in (b"ssubscribe", b"sunsubscribe"):
            for name in (b"first", b"second"):
                seed.says.said[word.upper() + b" " + name.upper()] = array([bulk(word), bulk(name), b":1\r\n"])
        late = b"-MOVED %d 127.0.0.1:%d\r\n" % (slot_of("first"), seed.port)
        seed.says.said[b"SUNSUBSCRIBE SECOND"] = late + seed.says.said[b"SUNSUBSCRIBE SECOND"]
        port = free_port()
        stack.enter_context(Fleet(config(f'"{seed.address}"', port, workers=1), tmp_path))
        listener = stack.enter_context(redis.Redis(port=port)).pubsub()
        listener.ssubscribe("first", "second")
        assert [told(listener) for _ in range(2)] == [("ssubscribe", "first", 1), ("ssubscribe", "second", 2)]
        listener.sunsubscribe("first", "second")
        assert [told(listener) for _ in range(2)] == [("sunsubscribe", "first", 1), ("sunsubscribe", "second", 0)]


def test_a_channel_that_is_left_while_it_is_on_its_way_does_not_arrive(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    (name, *_), home, target = neighbours(proxy.cluster)
    client, listener = proxy.client(), proxy.client().pubsub()
    listener.ssubscribe(name)
    assert told(listener) == ("ssubscribe", name, 1)
    with ExitStack() as stack:
        set_on_its_way(proxy, stack, name, home, target)
        listener.sunsubscribe(name)
        wait_for(lambda: unread(proxy.port) == 0, "it is heard that nobody listens any more")
        target.server.thaw()
    assert told(listener) == ("sunsubscribe", name, 0)
    assert listener.connection is not None
    wait_for(lambda: connections(*proxy.cluster.masters) == 0, "nobody listens")
    listener.subscribe("news")
    assert told(listener)[:2] == ("subscribe", "news"), "and nothing before"
    assert client.spublish(name, "nobody") == 0


def test_a_channel_that_is_left_while_it_waits_for_another_one_on_its_way_does_not_arrive(
    proxied: Callable[..., Proxied],
) -> None:
    proxy = proxied()
    (slow, left, other), home, target = neighbours(proxy.cluster)
    third = next(one for one in proxy.cluster.masters if one not in (home, target))
    client, listener = proxy.client(), proxy.client().pubsub()
    listener.ssubscribe(slow, left)
    assert [told(listener)[0] for _ in range(2)] == ["ssubscribe"] * 2
    with ExitStack() as stack:
        move = give_away(proxy.cluster, stack, left, third)
        set_on_its_way(proxy, stack, slow, home, target)
        listener.sunsubscribe(left)
        wait_for(lambda: unread(proxy.port) == 0, "it is heard that nobody listens to it any more")
        move()
        wait_for(lambda: connections(home) == 0, "it has to go, too")
        target.server.thaw()
    assert told(listener) == ("sunsubscribe", left, 1)
    listener.ssubscribe(other)
    assert told(listener) == ("ssubscribe", other, 2), "when all before it have had their turn"
    assert [client.spublish(name, "x") for name in (slow, left, other)] == [1, 0, 1]


def test_nobody_listens_for_a_client_that_went_while_a_channel_was_on_its_way(proxied: Callable[..., Proxied]) -> None:
    proxy = proxied()
    (name, *_), home, target = neighbours(proxy.cluster)
    client, listener = proxy.client(), proxy.client().pubsub()
    client.ping()
    listener.ssubscribe(name)
    assert told(listener) == ("ssubscribe", name, 1)
    with ExitStack() as stack:
        set_on_its_way(proxy, stack, name, home, target)
        listener.connection.disconnect()
        wait_for(lambda: proxy.fleet.stats()["instances"]["shop"]["clients"] == 1, "it is gone")
        target.server.thaw()
    wait_for(lambda: "cmdstat_ssubscribe" in target.info("INFO commandstats"), "the channel has arrived")
    wait_for(lambda: connections(*proxy.cluster.masters) == 0, "nobody listens")
    assert client.spublish(name, "nobody") == 0


def test_explain_says_where_a_message_goes(shared: Proxied) -> None:
    words = [*COMMAND, "explain", "-c", str(shared.fleet.file), "--json", "shop", "SPUBLISH", CHANNELS[0], "x"]
    said = json.loads(subprocess.run(words, capture_output=True, check=True, timeout=30).stdout)
    assert [row["shard"] for row in said["requests"]] == [slot_of(CHANNELS[0])]
