"""How clients are spread over workers, and what they notice of a worker that goes or a fleet that ends."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack

from tests.fleet.conftest import StartRedisFleet
from tests.kit.wait import wait_for

CONNECTIONS = 400


def connected(port: int, count: int, stack: ExitStack) -> list[socket.socket]:
    """So many connections, open to the end of the test."""
    clients = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(count)]
    for client in clients:
        stack.callback(client.close)
    return clients


def ping(client: socket.socket) -> None:
    """One request and its reply."""
    client.sendall(b"PING\r\n")
    assert client.recv(100) == b"+PONG\r\n"


def test_connections_are_spread_evenly_and_the_spread_is_shown(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet(workers=4)
    for slot in range(4):
        started.fleet.wait_log(f"worker.ready slot={slot} ")
    with ExitStack() as stack:
        for client in connected(started.port, CONNECTIONS, stack):
            ping(client)
        stats = started.fleet.stats()
    counts = [worker["connections"] for worker in stats["workers"]]
    assert sum(counts) == CONNECTIONS
    assert max(counts) / min(counts) <= 2
    assert stats["imbalance"] == round(max(counts) / (CONNECTIONS / 4), 2)


def test_a_full_queue_of_a_worker_that_is_taken_away_is_answered(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet(workers=2)
    pid = started.fleet.worker_pids()[1]
    os.kill(pid, signal.SIGSTOP)
    with ExitStack() as stack:
        clients = connected(started.port, 100, stack)
        for client in clients:
            client.sendall(b"PING\r\n")
        started.fleet.send_signal(signal.SIGTTOU)
        answers = [client.recv(100) for client in clients]
        assert answers == [b"+PONG\r\n"] * 100
        os.kill(pid, signal.SIGCONT)
        wait_for(lambda: started.fleet.stats()["leaving"] == [], "it has gone")
    assert len(started.fleet.stats()["workers"]) == 1


def test_a_drain_closes_idle_clients_one_after_the_other_and_lets_requests_finish(
    start_redis_fleet: StartRedisFleet,
) -> None:
    started = start_redis_fleet(drain=2)
    with ExitStack() as stack:
        busy, *idle = connected(started.port, 61, stack)
        for client in idle:
            ping(client)
        asked = time.monotonic()
        busy.sendall(b"BLPOP nobody-pushes 1\r\n")
        wait_for(lambda: started.fleet.stats()["instances"]["user"]["clients"] == 61, "all are served")
        started.fleet.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        for client in idle:
            client.setblocking(False)
        closed: dict[socket.socket, float] = {}

        def close_all() -> bool:
            for client in idle:
                if client not in closed:
                    try:
                        assert client.recv(100) == b""
                    except BlockingIOError:
                        continue
                    closed[client] = time.monotonic() - sent
            return len(closed) == len(idle)

        wait_for(close_all, "all idle clients are closed")
        assert busy.recv(100) == b"*-1\r\n"
        assert time.monotonic() - asked >= 1
        assert started.fleet.process.wait(10) == 0
    times = sorted(closed.values())
    # Uniform over 1.6 s: each third of it has its share.
    assert times[-1] - times[0] > 1.0
    assert times[len(times) // 3] - times[0] < 1.0
    assert times[2 * len(times) // 3] > 0.6


def test_who_comes_to_a_worker_that_hangs_is_answered_by_its_neighbour(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet(workers=2)
    fleet = started.fleet
    fleet.write(started.config.replace("[proxy]\n", "[proxy]\nhang_timeout_s = 1\n"))
    assert fleet.reload().accepted
    pid = fleet.kill_worker(0, signal.SIGSTOP)
    with ExitStack() as stack:
        clients = connected(started.port, 60, stack)
        for client in clients:
            client.sendall(b"SET k v\r\n")
        assert [client.recv(100) for client in clients] == [b"+OK\r\n"] * 60
        fleet.wait_log("slot.adopted slot=0 state=hung by=1")
        fleet.wait_log("slot.given_back slot=0 by=1")
        assert fleet.worker_pids()[0] != pid
        for client in clients:  # they stay with the neighbour
            client.sendall(b"GET k\r\n")
        assert [client.recv(100) for client in clients] == [b"$1\r\nv\r\n"] * 60

        def taken() -> bool:
            ping(connected(started.port, 1, stack)[0])
            return bool(fleet.stats()["workers"][0]["connections"] > 1)

        wait_for(taken, "the successor has clients of its own")
