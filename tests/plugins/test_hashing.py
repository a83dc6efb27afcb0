"""Hash functions and distributions of plug-ins place the keys of built-in storages."""

from __future__ import annotations

import json
from pathlib import Path

import redis

from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.plugins.conftest import Start
from tests.plugins.test_toy import explain
from tests.plugins.texts import config, instance

DIGITS = '''
from hyper_proxy import plugin


@plugin.hash_function("digits", help="the digits of the key as a number")
def digits(key):
    return int(b"".join(bytes([byte]) for byte in key if 48 <= byte <= 57) or b"0")


@plugin.distribution("backwards", hash="digits")
def backwards(servers):
    last = len(servers) - 1
    return lambda value: last - value % len(servers)
'''


def test_keys_are_where_the_functions_of_the_plug_in_say(
    start: Start, folder: Path, redis_nodes: list[Running]
) -> None:
    (folder / "digits.py").write_text(DIGITS)
    port = free_port()
    servers = [f"{node.address}:1 n{at}" for at, node in enumerate(redis_nodes)]
    fleet = start(config(["digits.py"], instance("redis", port, "redis", servers, 'distribution = "backwards"')))
    client = redis.Redis(port=port)
    client.mset({f"k{number}": number for number in range(9)})
    assert client.mget(f"k{number}" for number in range(9)) == [b"%d" % number for number in range(9)]
    kept = [sorted(redis.Redis(port=node.port).keys()) for node in redis_nodes]
    assert kept == [[b"k2", b"k5", b"k8"], [b"k1", b"k4", b"k7"], [b"k0", b"k3", b"k6"]]
    found = json.loads(explain(fleet.file, "--json", f"redis{port}", "GET", "k4"))
    place = found["keys"][0]["levels"][0]
    assert (place["hash"], place["hash_value"], place["shard"], place["label"]) == ("digits", 4, 1, "n1")
