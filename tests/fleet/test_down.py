"""What is known of a server that does not answer, while hardly anybody asks for its keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
import redis

from tests.kit.fleet import ROOT, Fleet
from tests.kit.mariadb import DATABASE, FULL_COLUMNS, USER, MariaDb
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

REDIS = """
[proxy]
workers = {workers}
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  backoff = {{ base_ms = 20, max_ms = 40 }}
  servers = ["{address}:{weight} a"]
"""
MYSQL = f"""
[proxy]
workers = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{{port}}"]
  [[instance.level]]
  storage = "mysql"
  backoff = {{{{ base_ms = 20, max_ms = 40 }}}}
  servers = ["{{address}} a"]
  username = "{USER}"
  password = "wrong"
  database = "{DATABASE}"
  table = {{{{ name = "kv", {FULL_COLUMNS} }}}}
"""
StartFleet = Callable[[str], Fleet]


def states(fleet: Fleet) -> dict[str, str]:
    """As `ctl show nodes` says them, by label."""
    words = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl", "-c", str(fleet.file), "show", "nodes"]
    done = subprocess.run(words, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=30, check=True)
    lines = [line.split() for line in done.stdout.splitlines()[1:]]
    return {line[1]: line[2] for line in lines}


def node(fleet: Fleet) -> dict[str, int]:
    found: dict[str, int] = fleet.stats()["instances"]["user"]["nodes"]["a"]
    return found


def on_page(fleet: Fleet) -> str:
    rows = json.loads(fleet.http("GET", "/?format=json")[1])["nodes"]
    return str(rows[0]["state"])


def get_fails(port: int) -> None:
    with redis.Redis(port=port, protocol=2) as client, pytest.raises(redis.ResponseError):
        client.get("k")


def answers(port: int) -> bool:
    with suppress(redis.ResponseError), redis.Redis(port=port, protocol=2) as client:
        client.get("k")
        return True
    return False


def expect_down(fleet: Fleet) -> None:
    """Everywhere, and still when the back-off has ended."""
    wait_for(lambda: node(fleet)["backing_off"] == 0, "the back-off is over")
    assert node(fleet)["down"] == 1
    assert states(fleet) == {"a": "down"}
    assert on_page(fleet) == "down"
    assert 'hyper_proxy_node_down{instance="user",node="a"} 1' in fleet.http("GET", "/metrics")[1].decode()
    pains = json.loads(fleet.http("GET", "/?format=json")[1])["pains"]
    assert any("server a of instance user is down" in pain["text"] for pain in pains)


def test_one_failed_request_is_enough_to_call_a_server_down(
    start_fleet: StartFleet, own: Callable[[Running], Running]
) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(REDIS.format(workers=1, port=port, address=server.address, weight=1))
    assert states(fleet) == {"a": "untried"}
    assert answers(port)
    assert states(fleet) == {"a": "up"}
    server.kill()
    get_fails(port)
    expect_down(fleet)
    server.start()
    wait_for(lambda: answers(port), "the server is back")
    assert node(fleet)["down"] == 0
    events = json.loads(fleet.http("GET", "/events")[1])["events"]
    down, up = (event for event in events if event["event"] in ("node.down", "node.up"))
    assert (down["event"], down["fields"]["node"], down["fields"]["kind"]) == ("node.down", "a", "refused")
    assert (up["event"], up["fields"]["node"], up["fields"]["slot"]) == ("node.up", "a", "0")
    assert events[0]["at"] <= down["at"] <= up["at"]
    assert states(fleet) == {"a": "up"}


def test_a_server_that_was_down_before_a_reload_is_told_to_be_up(
    start_fleet: StartFleet, own: Callable[[Running], Running]
) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(REDIS.format(workers=1, port=port, address=server.address, weight=1))
    server.kill()
    get_fails(port)
    fleet.write(REDIS.format(workers=1, port=port, address=server.address, weight=2))
    assert fleet.reload().accepted
    assert node(fleet)["down"] == 1
    get_fails(port)
    server.start()
    wait_for(lambda: answers(port), "the server is back")
    fleet.wait_log("node.up instance=user node=a")
    assert fleet.read_log().count("node.down instance=user node=a") == 1, "the reload is no news of the server"


def test_a_name_that_does_not_resolve_is_down(start_fleet: StartFleet) -> None:
    port = free_port()
    fleet = start_fleet(REDIS.format(workers=1, port=port, address="nowhere.invalid:6379", weight=1))
    get_fails(port)
    expect_down(fleet)


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "login refused"])
def test_a_mysql_server_is_down(start_fleet: StartFleet, mariadb: MariaDb, stopped: bool) -> None:
    port = free_port()
    address = f"127.0.0.1:{free_port() if stopped else mariadb.port}"
    fleet = start_fleet(MYSQL.format(port=port, address=address))
    get_fails(port)
    expect_down(fleet)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_is_back_is_noticed_though_nobody_asks(
    start_fleet: StartFleet, own: Callable[[Running], Running], workers: int
) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(REDIS.format(workers=workers, port=port, address=server.address, weight=1))
    server.stop()
    for _ in range(8):  # every worker meets it
        with redis.Redis(port=port, protocol=2) as client, pytest.raises(redis.ResponseError):
            client.get("k")
    assert states(fleet) == {"a": "down"}
    server.start()
    fleet.wait_log("node.up instance=user node=a", 15)
    wait_for(lambda: states(fleet) == {"a": "up"}, "every worker has noticed", 15)


def test_a_server_that_is_back_after_a_reload_is_noticed_though_nobody_asks(
    start_fleet: StartFleet, own: Callable[[Running], Running]
) -> None:
    server, port = own(redis_server()), free_port()
    text = REDIS.format(workers=1, port=port, address=server.address, weight=1)
    fleet = start_fleet(text)
    server.stop()
    with redis.Redis(port=port, protocol=2) as client, pytest.raises(redis.ResponseError):
        client.get("k")
    fleet.write(text + "  timeout = { read_ms = 333 }\n")
    assert fleet.reload().accepted
    assert states(fleet) == {"a": "down"}
    server.start()
    fleet.wait_log("node.up instance=user node=a", 15)
    assert states(fleet) == {"a": "up"}
