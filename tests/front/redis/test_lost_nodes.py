"""Real servers that are killed, frozen, unreachable or started again: their keys fail with a name, and come back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import psutil
import pytest
import redis

from tests.front.redis.conftest import DEADLINE_S, IMPATIENT, LATE_S, POLICIES, Proxy, encode
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for


@pytest.fixture
def mortal(
    own: Callable[[Running], Running], start_proxy: Callable[..., Proxy], tmp_path: Path
) -> tuple[Proxy, list[Running]]:
    nodes = [own(redis_server()) for _ in range(2)] + [own(redis_server(path=str(tmp_path / "c.sock")))]
    addresses = [nodes[0].address, nodes[1].address, f"unix:{nodes[2].path}"]
    return start_proxy(addresses, POLICIES, IMPATIENT), nodes


@pytest.mark.parametrize("victim", [1, 2], ids=["tcp", "unix"])
def test_a_killed_node_comes_back(mortal: tuple[Proxy, list[Running]], victim: int) -> None:
    proxy, nodes = mortal
    client = proxy.client()
    bad, good = proxy.keys_on(victim, 2), proxy.keys_on(0, 2)
    client.mset(dict.fromkeys([*bad, *good], "x"))
    nodes[victim].kill()
    for _ in range(20):
        began = monotonic()
        with pytest.raises(redis.ResponseError, match=f"instance 'user' node '{'abc'[victim]} "):
            client.get(bad[0])
        assert monotonic() - began < LATE_S
        assert client.mget(good) == [b"x", b"x"]
    assert proxy.client("nil").mget([bad[0], good[0]]) == [None, b"x"]
    with suppress(FileNotFoundError):
        Path(nodes[victim].path or "/nonexistent").unlink()
    nodes[victim].start()
    wait_for(lambda: _works(client, bad[0]), "the node is back")
    assert client.set(bad[0], "y")
    assert client.get(bad[0]) == b"y"


def _works(client: redis.Redis, key: str) -> bool:
    try:
        client.get(key)
    except redis.ResponseError:
        return False
    return True


def test_a_frozen_node_fails_within_the_deadline_and_comes_back_without_old_answers(
    mortal: tuple[Proxy, list[Running]],
) -> None:
    proxy, nodes = mortal
    client = proxy.client()
    bad, good = proxy.keys_on(1, 50), proxy.keys_on(0, 2)
    client.mset({key: f"value of {key}" for key in [*bad, *good]})
    nodes[1].freeze()
    for key in bad[:5]:
        began = monotonic()
        with pytest.raises(redis.ResponseError, match=r"node 'b .*(no|not) (answer within|tried again yet)"):
            client.get(key)
        assert monotonic() - began < DEADLINE_S + LATE_S
        assert client.get(good[0]) == f"value of {good[0]}".encode()
    nodes[1].thaw()
    wait_for(lambda: _works(client, bad[0]), "the node is back")
    assert client.mget(bad) == [f"value of {key}".encode() for key in bad]


def test_transactions_and_listeners_see_the_loss_of_their_node(mortal: tuple[Proxy, list[Running]]) -> None:
    proxy, nodes = mortal
    (key,) = proxy.keys_on(1, 1)
    connection = proxy.raw()
    connection.redis(b"WATCH", key.encode())
    connection.redis(b"MULTI")
    assert connection.redis(b"SET", key.encode(), b"1") == b"+QUEUED\r\n"
    blocked = proxy.raw()
    blocked.sock.sendall(encode("BLPOP", key, "0"))
    listeners = [proxy.raw() for _ in range(6)]
    for listener in listeners:
        assert listener.redis(b"SUBSCRIBE", b"news").startswith(b"*3")
    wait_for(lambda: b"blocked_clients:1" in nodes[1].ask(b"INFO clients\r\n", b"blocked_clients:1"), "it blocks")
    nodes[1].kill()
    assert blocked._resp().startswith(b"-ERR instance 'user' node 'b ")
    assert connection.redis(b"EXEC").startswith(b"-ERR instance 'user' node 'b ")
    assert connection.redis(b"EXEC") == b"-ERR EXEC without MULTI\r\n"
    ended = 0
    for listener in listeners:
        listener.sock.settimeout(0.5)
        with suppress(TimeoutError):
            ended += listener.file.read(1) == b""
    assert 0 < ended < 6  # those who listened on that node are told; the others go on listening


def test_every_node_commands_name_the_node_that_failed(mortal: tuple[Proxy, list[Running]]) -> None:
    proxy, nodes = mortal
    connection = proxy.raw()
    assert connection.redis(b"DBSIZE") == b":0\r\n"
    nodes[1].kill()
    assert connection.redis(b"DBSIZE").startswith(b"-ERR instance 'user' node 'b ")
    assert connection.redis(b"PING") == b"+PONG\r\n"


def test_a_wrong_password_to_a_node_is_named_and_makes_no_storm(
    own: Callable[[Running], Running], start_proxy: Callable[..., Proxy]
) -> None:
    server = own(redis_server("--requirepass", "secret"))
    proxy = start_proxy(
        [server.address], None, 'password = "guess"\n  backoff = { base_ms = 1000, max_ms = 5000 }', workers=1
    )
    connection = proxy.raw()
    replies = [connection.redis(b"GET", b"a") for _ in range(200)]
    assert b"login failed: the server refuses `password` of the level: WRONGPASS " in replies[0]
    assert b"b'" not in replies[0]
    assert all(reply.startswith(b"-ERR instance 'user' node 'a (") for reply in replies)
    assert all(b"WRONGPASS" in reply for reply in replies)
    info = server.ask(b"AUTH secret\r\nINFO stats\r\n", b"total_connections_received:")
    assert int(info.split(b"total_connections_received:")[1].split()[0]) < 10
    proxy.fleet.write(proxy.config.replace("guess", "secret"))
    assert proxy.fleet.reload().accepted
    assert proxy.raw().redis(b"SET", b"a", b"1") == b"+OK\r\n"


def test_a_node_by_name_is_reached(own: Callable[[Running], Running], start_proxy: Callable[..., Proxy]) -> None:
    server = own(redis_server())
    proxy = start_proxy([f"localhost:{server.port}"], None, "dns_ttl_s = 1")
    assert proxy.client().set("a", "1")
    server.kill()
    server.start()
    client = proxy.client()
    wait_for(lambda: _works(client, "a"), "the node is back")


def test_a_stopped_worker_does_not_blame_the_nodes(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running]
) -> None:
    proxy = start_proxy([node.address for node in redis_nodes], None, IMPATIENT, workers=1)
    connection = proxy.raw()
    keys = [f"key{number}" for number in range(30)]
    assert connection.redis(b"MSET", *(word.encode() for key in keys for word in (key, key))) == b"+OK\r\n"
    (pid,) = proxy.fleet.worker_pids()
    worker = psutil.Process(pid)
    for _ in range(5):
        connection.sock.sendall(encode("MGET", *keys))
        worker.suspend()
        until = monotonic() + 0.5
        wait_for(lambda: monotonic() > until, "longer than the read deadline")  # noqa: B023
        worker.resume()
        assert connection._resp().startswith(b"*30\r\n$4\r\nkey0\r\n")
