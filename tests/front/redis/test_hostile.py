"""What hostile or unlucky clients and servers must not be able to do to others."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable

import pytest
import redis

from tests.front.redis.conftest import Proxy
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{node} a"]
[[instance]]
name = "locked"
protocol = "redis"
password = "secret"
listen = ["127.0.0.1:{locked}"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{node} a"]
[[instance]]
name = "cache"
protocol = "memcache"
listen = ["127.0.0.1:{memcache}"]
  [[instance.level]]
  storage = "memcache"
  servers = ["127.0.0.1:{memcached} a"]
"""


@pytest.fixture
def ports(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], memcached_nodes: list[Running]
) -> dict[str, int]:
    ports = {name: free_port() for name in ("port", "locked", "memcache")}
    start_fleet(CONFIG.format(**ports, node=redis_nodes[0].port, memcached=memcached_nodes[0].port))
    return ports


def say(port: int, data: bytes) -> bytes:
    """All that comes back until the proxy closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(data)
        return client.makefile("rb").read()


def test_the_bytes_of_a_client_that_left_never_reach_the_next_one(ports: dict[str, int]) -> None:
    listener = socket.create_connection(("127.0.0.1", ports["port"]))
    listener.sendall(b"SUBSCRIBE channel\r\n")
    assert listener.recv(100).startswith(b"*3\r\n")
    publisher = redis.Redis(port=ports["port"], protocol=2)
    for _ in range(13):
        publisher.publish("channel", b"x" * 1_000_000)
    listener.shutdown(socket.SHUT_WR)
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", ports["port"]), timeout=5) as client:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
    listener.close()


@pytest.mark.parametrize("words", [b"WAIT 0 %b", b"MOVE k %b", b"COPY k l DB %b", b"SCAN 0 COUNT %b", b"SELECT %b"])
def test_a_number_without_end_is_an_error_and_no_more(ports: dict[str, int], words: bytes) -> None:
    answer = say(ports["port"], words % (b"9" * 5000) + b"\r\nPING\r\nQUIT\r\n")
    assert answer.startswith((b"-ERR ", b":0\r\n", b"*2\r\n")) and answer.endswith(b"+PONG\r\n+OK\r\n")


@pytest.mark.parametrize(
    ("front", "body"), [("port", b"SET pwned yes\r\n"), ("memcache", b"set pwned 0 0 3\r\nyes\r\n")]
)
def test_a_web_page_cannot_send_commands(ports: dict[str, int], front: str, body: bytes) -> None:
    answer = say(ports[front], b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + body)
    assert b"OK" not in answer and b"STORED" not in answer
    assert redis.Redis(port=ports["port"], protocol=2).get("pwned") is None


def test_a_stranger_may_not_fill_the_memory(ports: dict[str, int]) -> None:
    assert say(ports["locked"], b"*2\r\n$4\r\nECHO\r\n$300000\r\n") == (
        b"-ERR Protocol error: invalid bulk length: more than 16384 before AUTH\r\n"
    )
    login = b"*2\r\n$4\r\nAUTH\r\n$6\r\nsecret\r\n"
    large = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n%b\r\n" % (b"x" * 300000)
    assert say(ports["locked"], login + large + b"QUIT\r\n") == b"+OK\r\n" * 3


def test_idle_clients_that_leave_during_a_drain_do_not_cut_the_others(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], memcached_nodes: list[Running]
) -> None:
    ports = {name: free_port() for name in ("port", "locked", "memcache")}
    config = CONFIG.format(**ports, node=redis_nodes[0].port, memcached=memcached_nodes[0].port)
    fleet = start_fleet(config.replace("drain_timeout_s = 1", "drain_timeout_s = 5"))
    idle = [socket.create_connection(("127.0.0.1", ports["port"])) for _ in range(20)]
    with socket.create_connection(("127.0.0.1", ports["port"])) as waiting:
        waiting.sendall(b"BLPOP nothing 1\r\n")
        wait_for(lambda: fleet.stats()["instances"]["user"]["in_flight"] == 1, "BLPOP waits")
        fleet.process.terminate()
        fleet.wait_log("draining")
        for client in idle:
            client.close()
        assert waiting.makefile("rb").read() == b"*-1\r\n"
    assert fleet.process.wait(10) == 0
    assert "Traceback" not in fleet.read_log()


def test_a_worker_may_open_as_many_descriptors_as_the_system_allows(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], memcached_nodes: list[Running]
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        ports = {name: free_port() for name in ("port", "locked", "memcache")}
        fleet = start_fleet(CONFIG.format(**ports, node=redis_nodes[0].port, memcached=memcached_nodes[0].port))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    (worker,) = fleet.worker_pids()
    assert resource.prlimit(worker, resource.RLIMIT_NOFILE) == (hard, hard)


def test_what_a_server_will_not_put_into_a_transaction_is_not_done(
    start_fleet: Callable[[str], Fleet], own: Callable[[Running], Running], memcached_nodes: list[Running]
) -> None:
    node = own(redis_server())
    server = redis.Redis(port=node.port, protocol=2)
    server.execute_command("ACL", "SETUSER", "default", "on", "nopass", "~*", "+@all", "-multi")
    ports = {name: free_port() for name in ("port", "locked", "memcache")}
    start_fleet(CONFIG.format(**ports, node=node.port, memcached=memcached_nodes[0].port))
    answer = say(ports["port"], b"PING\r\nMULTI\r\nSET k 1\r\nINCR n\r\nEXEC\r\nGET k\r\nQUIT\r\n")
    assert answer.startswith(b"+PONG\r\n+OK\r\n-NOPERM ")
    assert b"-EXECABORT " in answer and answer.endswith(b"$-1\r\n+OK\r\n")
    assert server.exists("k", "n") == 0


NOTHING = b"*2001\r\n" + b"$-1\r\n" * 2001


def test_an_inline_request_of_many_words_harms_nobody(proxy: Proxy) -> None:
    """Its words as redis sends them lie at other places than in the line; one request in a hundred is looked at."""
    line = b"mget aaaaaahset " + b" ".join(b"x%d" % number for number in range(2000)) + b"\r\n"
    with socket.create_connection(("127.0.0.1", proxy.ports["user"])) as sock, sock.makefile("rb") as file:
        for _ in range(500):
            sock.sendall(line)
            assert file.read(len(NOTHING)) == NOTHING
