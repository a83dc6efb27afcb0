"""More clients than descriptors, and clients that only knock: who is there is served, and the log stays short."""

from __future__ import annotations

import re
import resource
import socket
from collections.abc import Callable
from contextlib import ExitStack

import psutil
import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = {workers}
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}", "[::1]:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{a} a", "127.0.0.1:{b} b"]
"""
FULL = b"-ERR max number of clients reached\r\n"
PROBES = 10_000
DESCRIPTORS = 120


@pytest.fixture
def serve(start_fleet: Callable[[str], Fleet], redis_nodes: list[Running]) -> Callable[..., tuple[Fleet, int]]:
    def start(workers: int = 1) -> tuple[Fleet, int]:
        port = free_port()
        a, b = (node.port for node in redis_nodes[:2])
        fleet = start_fleet(CONFIG.format(workers=workers, port=port, a=a, b=b))
        for slot in range(workers):
            fleet.wait_log(f"worker.ready slot={slot} ")
        return fleet, port

    return start


def limit_descriptors(pid: int, count: int) -> None:
    """From now on the process may have so many; what it has it keeps."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (count, hard))


def ask(client: socket.socket) -> bytes:
    """The answer to PING, or what the proxy says instead."""
    client.sendall(b"PING\r\n")
    return client.recv(100)


def test_clients_leave_the_last_descriptors_to_the_servers(
    serve: Callable[..., tuple[Fleet, int]], redis_nodes: list[Running]
) -> None:
    fleet, port = serve()
    (pid,) = fleet.worker_pids()
    client = redis.Redis(port=port, protocol=2, single_connection_client=True)
    client.mset({f"k{number}": "v" for number in range(20)})
    limit_descriptors(pid, DESCRIPTORS)
    with ExitStack() as crowd:
        answers = []
        for _ in range(2 * DESCRIPTORS):
            sock = crowd.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            sock.sendall(b"PING\r\n")
            answers.append(sock.recv(100))
        assert set(answers) == {b"+PONG\r\n", FULL}
        assert DESCRIPTORS // 2 < answers.count(b"+PONG\r\n") < DESCRIPTORS
        for node in redis_nodes[:2]:  # the servers are lost, and dialled again
            redis.Redis(port=node.port).client_kill_filter(_type="normal", skipme=True)
        wait_for(lambda: fleet.stats()["instances"]["user"]["nodes"]["a"]["connections"] == 0, "the servers are lost")
        assert client.mget([f"k{number}" for number in range(20)]) == [b"v"] * 20
        with pytest.raises(redis.ResponseError, match="no connection: the descriptors left are kept for connections"):
            client.blpop(["queue"], 1)
    stats = fleet.stats()["instances"]["user"]
    assert stats["refused"] == answers.count(FULL)
    assert stats["nodes"]["a"]["errors"].get("refused") is None
    wait_for(lambda: fleet.stats()["instances"]["user"]["clients"] == 1, "the crowd is gone")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as late:
        assert ask(late) == b"+PONG\r\n"
    assert fleet.read_log().count("client.refused") == 1


def test_accepting_pauses_while_there_is_no_descriptor(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve()
    (pid,) = fleet.worker_pids()
    worker = psutil.Process(pid)
    limit_descriptors(pid, 3)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as waiting:
        waiting.sendall(b"PING\r\n")
        wait_for(lambda: fleet.stats()["workers"][0]["accept_pauses"] >= 1, "accepting pauses")
        before = worker.cpu_times().user + worker.cpu_times().system
        wait_for(lambda: fleet.stats()["workers"][0]["accept_pauses"] >= 4, "it is tried again and again")
        assert worker.cpu_times().user + worker.cpu_times().system - before < 0.7  # of some 1.5 seconds
        limit_descriptors(pid, 1024)
        assert waiting.recv(100) == b"+PONG\r\n"
    assert fleet.read_log().count("listener.paused") == 1


def test_probes_of_the_port_are_one_counter_and_no_line(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve(workers=2)
    before = fleet.read_log()
    for number in range(PROBES):
        with socket.socket() as probe:
            probe.connect(("127.0.0.1", port))
            if number % 2:  # as those do that reset instead of saying good-bye
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wait_for(lambda: fleet.stats()["instances"]["user"]["probes"] >= PROBES * 0.99, "they are counted")
    stats = fleet.stats()["instances"]["user"]
    assert stats["errors"] == {}
    assert fleet.read_log() == before
    wait_for(lambda: fleet.stats()["instances"]["user"]["clients"] == 0, "they are gone")


def test_clients_of_ipv6_have_brackets(serve: Callable[..., tuple[Fleet, int]]) -> None:
    _, port = serve()
    client = redis.Redis(host="::1", port=port, protocol=2)
    info = client.client_info()
    assert re.fullmatch(r"\[::1\]:\d+", str(info["addr"]))
    assert info["laddr"] == f"[::1]:{port}"


def test_connections_are_spread_over_the_workers(serve: Callable[..., tuple[Fleet, int]]) -> None:
    fleet, port = serve(workers=4)
    with ExitStack() as crowd:
        for _ in range(400):
            sock = crowd.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            assert ask(sock) == b"+PONG\r\n"
        stats = fleet.stats()
        counts = [worker["connections"] for worker in stats["workers"]]
        assert sum(counts) == 400
        assert max(counts) / min(counts) <= 2
        assert stats["imbalance"] == round(max(counts) / 100, 2)
