"""What an instance's limits and a change of its kind mean for its clients."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

HEAD = """
[proxy]
workers = 1
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
"""
REDIS = """
  [[instance.level]]
  storage = "redis"
  hash_tag = "{{}}"
  db = {db}
  servers = ["127.0.0.1:{a} a", "127.0.0.1:{b} b"]
"""


@pytest.fixture
def serve(start_fleet: Callable[[str], Fleet], redis_nodes: list[Running]) -> Callable[..., tuple[Fleet, int]]:
    def start(limits: str = "", db: int = 0, allow: str = "") -> tuple[Fleet, int]:
        port = free_port()
        a, b = (node.port for node in redis_nodes[:2])
        head = HEAD + allow + (f"  [instance.limits]\n  {limits}\n" if limits else "")
        return start_fleet((head + REDIS).format(port=port, a=a, b=b, db=db)), port

    return start


def test_a_client_ends_when_its_instance_becomes_another_kind(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve()
    old = redis.Redis(port=port, db=3, protocol=2, single_connection_client=True, retry=Retry(NoBackoff(), 0))
    old.set("k", "v")
    fleet.write(HEAD.format(port=port) + sqlite_level())
    assert fleet.reload().accepted
    with pytest.raises(redis.ConnectionError):
        old.get("k")
    with redis.Redis(port=port, protocol=2) as new:
        assert new.get("k") is None
        assert new.set("k", "of sqlite")
    assert "Traceback" not in fleet.read_log()


def test_a_client_too_many_is_told_so(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve("max_clients = 1")
    place = ("127.0.0.1", port)
    with socket.create_connection(place) as first, socket.create_connection(place) as second:
        assert second.recv(100) == b"-ERR max number of clients reached\r\n"
        assert second.recv(100) == b""
        for _ in range(20):
            with socket.create_connection(place) as another:
                assert another.makefile("rb").read() == b"-ERR max number of clients reached\r\n"
        first.sendall(b"PING\r\n")
        assert first.recv(100) == b"+PONG\r\n"
    stats = fleet.stats()["instances"]["user"]
    assert stats["refused"] == 21
    wait_for(lambda: fleet.stats()["instances"]["user"]["clients"] == 0, "its place is free")
    with socket.create_connection(place) as late:
        late.sendall(b"PING\r\n")
        assert late.recv(100) == b"+PONG\r\n"
    assert fleet.read_log().count("client.refused") == 1
    assert "in each worker" in fleet.read_log()


def test_a_key_that_is_too_long_is_refused_and_the_rest_goes_on(serve: Callable[..., tuple[Fleet, int]]) -> None:
    _, port = serve("max_key_bytes = 5")
    pipe = redis.Redis(port=port, protocol=2).pipeline(transaction=False)
    pipe.set("12345", 1)
    pipe.set("123456", 1)
    pipe.mget("1", "123456")
    pipe.sinter(["{a}1234", "{a}2"])
    pipe.get("12345")
    answers = pipe.execute(raise_on_error=False)
    assert [str(answer) for answer in answers[1:4]] == ["a key is longer than limits.max_key_bytes (5)"] * 3
    assert (answers[0], answers[4]) == (True, b"1")


def test_a_key_that_is_too_long_spoils_the_transaction(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve("max_key_bytes = 5")
    with redis.Redis(port=port, protocol=2, single_connection_client=True) as client:
        client.execute_command("MULTI")
        client.execute_command("SET", "1", "x")
        with pytest.raises(redis.ResponseError, match="max_key_bytes"):
            client.execute_command("SET", "123456", "x")
        with pytest.raises(redis.exceptions.ExecAbortError):
            client.execute_command("EXEC")
        assert client.get("1") is None
        before = fleet.stats()["instances"]["user"]["requests"]["read"]
        with pytest.raises(redis.ResponseError, match="max_key_bytes"):
            client.get("123456")
        with pytest.raises(redis.ResponseError, match="max_key_bytes"):
            client.mget("1", "123456")
    assert fleet.stats()["instances"]["user"]["requests"]["read"] == before + 2


def test_a_request_that_never_ends_is_refused(serve: Callable[..., tuple[Fleet, int]]) -> None:
    _, port = serve('max_request_bytes = "64KB"')
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"*1000\r\n" + b"$1000\r\n%b\r\n" % (b"x" * 1000) * 66)
        answer = client.makefile("rb").read()
    assert answer == b"-ERR the request is longer than limits.max_request_bytes (65536)\r\n"


def test_small_requests_are_no_large_one_though_many_come_at_once(serve: Callable[..., tuple[Fleet, int]]) -> None:
    _, port = serve('max_request_bytes = "64KB"')
    asked = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * 100_000
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        sending = threading.Thread(target=client.sendall, args=(asked,))
        sending.start()
        answers = client.makefile("rb").read(500_000)
        sending.join()
    assert answers == b"$-1\r\n" * 100_000


def test_databases_of_a_level_are_counted_from_its_own_first(
    serve: Callable[..., tuple[Fleet, int]], redis_nodes: list[Running]
) -> None:
    _, port = serve(db=4, allow='allow = ["FLUSHALL"]\n')
    client = redis.Redis(port=port, protocol=2)
    client.set("{k}1", "v")
    client.set("{k}2", "w")
    assert client.move("{k}1", 2)
    assert client.copy("{k}2", "{k}3", destination_db="2")
    assert redis.Redis(port=port, db=2, protocol=2).mget("{k}1", "{k}3") == [b"v", b"w"]
    found = [redis.Redis(port=node.port, db=6, protocol=2).dbsize() for node in redis_nodes[:2]]
    assert sorted(found) == [0, 2]
    with pytest.raises(redis.ResponseError, match="DB index is out of range"):
        client.move("{k}2", 16)
    with pytest.raises(redis.ResponseError, match="FLUSHALL would also empty databases"):
        client.flushall()


def test_nothing_is_popped_for_a_client_that_left_behind_a_pipeline(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve()
    client = redis.Redis(port=port, protocol=2)
    with socket.create_connection(("127.0.0.1", port)) as leaving:
        leaving.sendall(b"BLPOP list 0\r\n")
        wait_for(lambda: fleet.stats()["instances"]["user"]["in_flight"] == 1, "BLPOP waits")
        leaving.sendall(b"GET x\r\n")
    wait_for(lambda: fleet.stats()["instances"]["user"]["clients"] == 0, "the client is gone")
    client.rpush("list", "kept")
    assert client.lrange("list", 0, -1) == [b"kept"]


def test_the_log_tells_when_a_node_fails_and_when_it_is_back(
    serve: Callable[..., tuple[Fleet, int]], own: Callable[[Running], Running], start_fleet: Callable[[str], Fleet]
) -> None:
    node = own(redis_server())
    port = free_port()
    config = (HEAD + REDIS).format(port=port, a=node.port, b=node.port, db=0)
    fleet = start_fleet(config.replace(f', "127.0.0.1:{node.port} b"', ""))
    client = redis.Redis(port=port, protocol=2)
    client.set("k", "v")
    node.kill()
    for _ in range(50):
        with pytest.raises(redis.ResponseError):
            client.get("k")
    node.start()
    wait_for(lambda: _answers(client), "the node is back")
    fleet.wait_log("node.up instance=user node=a")
    assert fleet.read_log().count("node.down instance=user node=a") == 1


def _answers(client: redis.Redis) -> bool:
    with suppress(redis.ResponseError):
        client.get("k")
        return True
    return False


def test_a_blocked_client_is_not_cut_by_a_drain(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"BLPOP list 0.5\r\n")
        wait_for(lambda: fleet.stats()["instances"]["user"]["in_flight"] == 1, "BLPOP waits")
        fleet.process.terminate()
        assert client.makefile("rb").read() == b"*-1\r\n"


def test_a_silent_client_is_closed_and_one_that_waits_is_not(serve: Callable[..., tuple[Fleet, int]]) -> None:
    _, port = serve("idle_timeout_s = 0.5")
    place = ("127.0.0.1", port)
    with socket.create_connection(place, timeout=10) as silent, socket.create_connection(place, timeout=10) as waiting:
        waiting.sendall(b"BLPOP list 3\r\n")
        silent.sendall(b"PING\r\n")
        assert silent.makefile("rb").read() == b"+PONG\r\n"
        assert waiting.recv(100) == b"*-1\r\n"
