"""Another number of workers under load: old blocking clients, whose connections may end between two requests, and who
then always find somebody at the first attempt."""

from __future__ import annotations

import os
import signal
import socket

from tests.fleet.conftest import RedisFleet, StartRedisFleet
from tests.kit.clients import Crowd
from tests.kit.reconnecting import reconnecting
from tests.kit.wait import wait_for

CLIENTS = 16


def resized(started: RedisFleet, workers: int) -> None:
    """Reloads with another number of workers."""
    config = started.config.replace("workers = 2", f"workers = {workers}")
    started.fleet.write(config)
    verdict = started.fleet.reload()
    assert verdict.accepted, verdict.body


def test_another_number_of_workers_fails_no_request(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet(workers=2, drain=1)
    fleet = started.fleet
    with Crowd(CLIENTS, reconnecting(started.port)) as crowd:
        wait_for(lambda: crowd.done > 10 * CLIENTS, "all clients are at work")
        for workers in (4, 1, 3):
            resized(started, workers)
            after = crowd.done
            wait_for(lambda after=after: crowd.done > after + 5 * CLIENTS, "they still are")  # type: ignore[misc]
        wait_for(lambda: fleet.stats()["leaving"] == [], "only the newest workers are left")
        after = crowd.done
        wait_for(lambda: crowd.done > after + 5 * CLIENTS, "all are at work with them")
    assert crowd.failures == []
    stats = fleet.stats()
    assert [worker["generation"] for worker in stats["workers"]] == [4, 4, 4]
    assert sum(stats["instances"]["user"]["requests"].values()) >= 2 * crowd.done


def test_the_queues_of_removed_slots_are_answered(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet(workers=2, drain=5)
    pids = started.fleet.worker_pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    clients = [socket.create_connection(("127.0.0.1", started.port), timeout=10) for _ in range(100)]
    for client in clients:
        client.sendall(b"PING\r\n")
    resized(started, 1)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    answers = [client.recv(100) for client in clients]
    for client in clients:
        client.close()
    assert answers == [b"+PONG\r\n"] * 100
