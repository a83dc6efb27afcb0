"""Slow requests are recorded, and the record says where their time went; with real servers and clients."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pymemcache
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from hyper_proxy.common.keyname import digest
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = {workers}
drain_timeout_s = 1
[log]
format = "json"
slow_ms = {slow_ms}
access_sample = {sample}
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "{protocol}"
  servers = ["{server} a"]
  timeout = {{ connect_ms = 1000, read_ms = 400, queue_ms = 300 }}
"""
PHASES = ("parse_us", "queue_us", "connect_us", "storage_us", "merge_us", "write_us")
SLOW_US = 80_000
NO_RETRY = Retry(NoBackoff(), 0)
StartFleet = Callable[[str], Fleet]
Own = Callable[[Running], Running]
Record = dict[str, Any]


def config(port: int, server: str, protocol: str = "redis", slow_ms: int = SLOW_US // 1000, sample: float = 0.0,
           workers: int = 1) -> str:
    return CONFIG.format(
        port=port, server=server, protocol=protocol, slow_ms=slow_ms, sample=sample, workers=workers
    )  # fmt: skip


def logged(fleet: Fleet, event: str) -> list[Record]:
    lines = [line for line in fleet.read_log().splitlines() if f'"{event}"' in line]
    return [json.loads(line) for line in lines]


def recorded(fleet: Fleet, command: str) -> list[Record]:
    """The slow log, oldest first, of this command: on a busy machine any other may have been slow as well."""
    answer: list[Record] = json.loads(fleet.http("GET", "/slowlog")[1])["slowlog"]
    return [record for record in answer[::-1] if record["command"] == command]


def slow(fleet: Fleet, command: str, count: int = 1) -> list[Record]:
    """The same when it has so many; what holds of every record is asserted."""
    wait_for(lambda: len(recorded(fleet, command)) >= count, f"{count} slow requests")
    records = recorded(fleet, command)
    for record in records:
        assert record["total_us"] >= SLOW_US
        assert all(record[phase] >= 0 for phase in PHASES)
        assert sum(record[phase] for phase in PHASES) == pytest.approx(record["total_us"], abs=1000)
        assert (record["instance"], record["slot"]) == ("user", 0)
    return records


def mostly(record: Record) -> str:
    """The phase that took most of the time, which must be nearly all of it."""
    phase = max(PHASES, key=lambda phase: int(record[phase]))
    assert record[phase] > 0.8 * record["total_us"], record
    return phase


def test_a_server_that_answers_late_or_never(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address))
    client = redis.Redis(port=port, protocol=2, retry=NO_RETRY)
    client.set("k", "v")
    server.freeze()
    with pytest.raises(redis.ResponseError):
        client.get("k")
    server.thaw()
    wait_for(lambda: _answers(client), "the server is back")
    (record, *_) = slow(fleet, "get")
    assert mostly(record) == "storage_us"
    assert (record["command"], record["requests"], record["keys"]) == ("get", 1, 1)
    assert (record["key"], record["node"], record["error"]) == (digest(b"k"), "a", "timeout")
    assert record["client"].startswith("127.0.0.1:")
    assert record["bytes_in"] == len(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    written = fleet.stats()["instances"]["user"]["slow"]
    wait_for(lambda: len(logged(fleet, "request.slow")) == written, "they are in the log")
    (line,) = [line for line in logged(fleet, "request.slow") if line["error"] == "timeout"]
    del record["at"]
    assert {name: line[name] for name in record} == record


def _answers(client: redis.Redis) -> bool:
    try:
        return client.get("k") == b"v"
    except redis.ResponseError:
        return False


def test_a_connection_that_is_made_slowly(start_fleet: StartFleet) -> None:
    port = free_port()
    with FakeServer(REDIS) as server:
        fleet = start_fleet(config(port, f"127.0.0.1:{server.port}"))
        server.behave("slow")  # its greeting, too, word by word
        client = redis.Redis(port=port, protocol=2)
        assert client.get("k") == b"value of k"
        (record,) = slow(fleet, "get")
        assert record["connect_us"] >= 100_000
        assert record["storage_us"] >= 90_000
        assert record["connect_us"] + record["storage_us"] > 0.9 * record["total_us"]
        with client.pipeline(transaction=False) as pipe:
            pipe.get("first")
            pipe.get("second")
            pipe.execute()
        record = slow(fleet, "get", 2)[1]
        assert (record["command"], record["requests"], record["key"]) == ("get", 2, digest(b"first"))
        assert mostly(record) == "storage_us"


def test_a_request_that_waits_behind_a_large_one(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address).replace("read_ms = 400", "read_ms = 5000"))
    first, second = (redis.Redis(port=port, protocol=2, retry=NO_RETRY) for _ in range(2))
    first.set("k", "v")
    server.freeze()
    with socket.create_connection(("127.0.0.1", port)) as large:
        value = b"x" * (8 << 20)  # below max_pending_bytes, above what the kernel takes
        large.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\n%b\r\n" % (len(value), value))
        node = lambda: fleet.stats()["instances"]["user"]["nodes"]["a"]  # noqa: E731
        wait_for(lambda: node()["in_flight"] == 1, "the large request is on its way")
        with pytest.raises(redis.ResponseError, match="not sent within"):
            second.get("k")
        server.thaw()
    (record,) = slow(fleet, "get")
    assert (mostly(record), record["error"], record["key"]) == ("queue_us", "queue", digest(b"k"))


def test_a_client_that_takes_its_answer_slowly(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address))
    size = 32 << 20
    redis.Redis(port=server.port).set("big", b"x" * size)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n")
        sent = lambda: fleet.stats()["instances"]["user"]["bytes_out"]  # noqa: E731
        wait_for(lambda: sent() > 0, "the answer is begun")
        began = fleet.stats()
        wait_for(lambda: fleet.stats()["workers"][0]["uptime_s"] > began["workers"][0]["uptime_s"] + 0.5, "it waits")
        left = size
        while left > 0:
            left -= len(client.recv(1 << 20))
    (record,) = [record for record in slow(fleet, "get") if record["bytes_out"] > size]
    assert record["write_us"] > 400_000
    assert (record["command"], record["key"], record["error"]) == ("get", digest(b"big"), "")


def test_what_waits_for_other_clients_is_not_slow(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address))
    client = redis.Redis(port=port, protocol=2)
    assert client.blpop(["nothing"], timeout=0.3) is None
    client.execute_command("EVAL", BUSY, 1, "k")
    assert slow(fleet, "eval")
    assert recorded(fleet, "blpop") == []


BUSY = """local began = redis.call('TIME')
while true do
  local now = redis.call('TIME')
  if (now[1] - began[1]) * 1000000 + now[2] - began[2] > 100000 then return 1 end
end"""


def test_a_transaction(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address))
    client = redis.Redis(port=port, protocol=2)
    with client.pipeline() as pipe:
        pipe.set("k", 1)
        pipe.execute_command("EVAL", BUSY, 1, "k")
        pipe.execute()
    (record,) = slow(fleet, "exec")
    assert (mostly(record), record["node"]) == ("storage_us", "a")


def test_memcache(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(memcached()), free_port()
    fleet = start_fleet(config(port, server.address, "memcache"))
    client = pymemcache.Client(("127.0.0.1", port))
    client.set("k", b"v", noreply=False)
    server.freeze()
    with pytest.raises(pymemcache.exceptions.MemcacheServerError):
        client.get_many(["k", "other"])
    server.thaw()
    (record,) = slow(fleet, "get")
    assert (mostly(record), record["error"]) == ("storage_us", "timeout")
    assert (record["keys"], record["key"]) == (2, digest(b"k"))


def test_a_stall_of_all_clients_costs_a_limited_number_of_records(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address))
    redis.Redis(port=port, protocol=2).set("k", "v")
    before = fleet.stats()["instances"]["user"]["slow"]
    server.freeze()
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(250)]
    for client in clients:
        client.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n")
    for client in clients:
        assert client.recv(100).startswith(b"-ERR")
        client.close()
    server.thaw()
    stats = fleet.stats()["instances"]["user"]
    assert stats["slow"] == before + 250
    recorded = stats["slow"] - stats["unlogged"]
    wait_for(lambda: len(logged(fleet, "request.slow")) == recorded, "all of them are in the log")
    assert 100 <= stats["unlogged"] < 250


def test_a_share_of_all_requests_is_logged_and_a_reload_changes_it(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server.address, slow_ms=0, sample=0))
    client = redis.Redis(port=port, protocol=2)
    for number in range(50):
        client.get(f"k{number}")
    assert logged(fleet, "request.sampled") == []
    fleet.write(config(port, server.address, slow_ms=0, sample=1) + "\n[admin]\nshow_keys = true\n"
                f'listen = "127.0.0.1:{fleet.admin_port}"\n')  # fmt: skip
    assert fleet.reload().accepted
    for number in range(50):
        client.get(f"k{number}")
    with pytest.raises(redis.ResponseError):
        client.execute_command("GETT", "k")
    wait_for(lambda: len(logged(fleet, "request.sampled")) >= 51, "all are logged")
    records = logged(fleet, "request.sampled")
    assert [record["key"] for record in records[:50]] == [f"k{number}" for number in range(50)]
    assert (records[0]["error"], records[0]["bytes_out"], records[0]["node"]) == ("", len(b"$-1\r\n"), "a")
    assert (records[50]["command"], records[50]["error"]) == ("", "reply")
    assert logged(fleet, "request.slow") == []


def test_the_server_that_was_waited_for_is_named_and_not_the_one_that_failed_first(
    start_fleet: StartFleet, own: Own
) -> None:
    frozen, dead, port = own(redis_server()), free_port(), free_port()
    text = config(port, frozen.address).replace(f'"{frozen.address} a"', f'"{frozen.address} a", "127.0.0.1:{dead} c"')
    fleet = start_fleet(text)
    client = redis.Redis(port=port, protocol=2, retry=NO_RETRY)
    keys = [f"key{number}" for number in range(40)]
    frozen.freeze()
    with pytest.raises(redis.ResponseError):
        client.mget(keys)
    with pytest.raises(redis.ResponseError):
        client.mget(keys)  # of the dead one it is known by now
    frozen.thaw()
    for record in slow(fleet, "mget"):
        assert (record["node"], record["error"]) == ("a", "timeout")
