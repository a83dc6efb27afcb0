"""Shard channels of a cluster, to clients that know of no slots."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.front.topology.cluster_kit import slot_of
from tests.front.topology.conftest import Proxied
from tests.kit.fleet import COMMAND
from tests.kit.wait import wait_for

CHANNELS = [f"channel:{number}" for number in range(12)]


def told(listener: Any) -> tuple[str, str | None, Any]:
    """The next message: what kind, of which channel, and what it says."""
    message = listener.get_message(timeout=5)
    assert message is not None, "nothing has come"
    channel = message["channel"]
    return message["type"], channel.decode() if channel is not None else None, message["data"]


def connections(proxy: Proxied) -> int:
    """On which somebody listens to shard channels."""
    rows = [row for one in proxy.cluster.masters for row in one.client.client_list()]
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
        wait_for(lambda: connections(proxy) == 1, "nobody listens at the old one")
    late = proxy.client().pubsub()
    late.ssubscribe(name)
    assert told(late) == ("ssubscribe", name, 1)
    for server in proxy.cluster.masters:
        server.server.kill()
    with pytest.raises(redis.RedisError):  # it is closed, and redis-py tries once more in vain
        wait_for(lambda: listener.get_message(timeout=1), "it is told")


def test_explain_says_where_a_message_goes(shared: Proxied) -> None:
    words = [*COMMAND, "explain", "-c", str(shared.fleet.file), "--json", "shop", "SPUBLISH", CHANNELS[0], "x"]
    said = json.loads(subprocess.run(words, capture_output=True, check=True, timeout=30).stdout)
    assert [row["shard"] for row in said["requests"]] == [slot_of(CHANNELS[0])]
