"""What happens to a fleet, with old blocking clients at work: no request fails that need not."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable

import psutil
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.fleet.conftest import RedisFleet, StartRedisFleet
from tests.kit.clients import Crowd
from tests.kit.wait import wait_for

RELOADS = 40
CLIENTS = 20


def verified(port: int) -> Callable[[int], Callable[[], None]]:
    """A client that writes and reads its own keys, whose values name them; it never reconnects by itself."""

    def make_step(number: int) -> Callable[[], None]:
        client = redis.Redis(port=port, socket_timeout=10, retry=Retry(NoBackoff(), 0))
        keys = [f"{number}:{index}" for index in range(8)]

        def step() -> None:
            client.mset({key: f"value of {key}" for key in keys})
            assert client.mget(keys) == [f"value of {key}".encode() for key in keys]

        return step

    return make_step


def broken(config: str, turn: int) -> str:
    """One of the ways in which a file can be wrong."""
    faults = ('storage = "rediss"', "storage = 7", "strage = 'redis'", "storage = [")
    return config.replace('storage = "redis"', faults[turn % len(faults)])


def test_reloads_under_load_fail_no_request_and_leave_nothing_behind(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet()
    fleet, config = started.fleet, started.config
    master = psutil.Process(fleet.process.pid)
    with Crowd(CLIENTS, verified(started.port)) as crowd:
        wait_for(lambda: crowd.done > 10 * CLIENTS, "all clients are at work")
        fds = master.num_fds()
        for turn in range(RELOADS):
            bad = turn % 2 == 1
            fleet.write(broken(config, turn // 2) if bad else f"{config}  timeout = {{ read_ms = {1000 + turn} }}\n")
            verdict = fleet.reload()
            assert verdict.accepted is not bad, verdict.body
            if bad:
                assert verdict.body["line"] > 1
                assert f"{fleet.file}:{verdict.body['line']}: error: " in verdict.body["error"]
        after = crowd.done
        wait_for(lambda: crowd.done > after + 10 * CLIENTS, "they still are")
    assert crowd.failures == []
    assert fleet.stats()["config"]["generation"] == 1 + RELOADS // 2
    assert master.num_fds() <= fds
    assert sum(worker["restarts"] for worker in fleet.stats()["workers"]) == 0


def test_a_killed_worker_breaks_its_own_connections_once(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet()
    with Crowd(CLIENTS, verified(started.port)) as crowd:
        wait_for(lambda: crowd.done > 10 * CLIENTS, "all clients are at work")
        pid = started.fleet.worker_pids()[0]
        mine = len([c for c in psutil.Process(pid).net_connections() if c.status == psutil.CONN_ESTABLISHED])
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: started.fleet.worker_pids()[0] not in (0, pid), "the successor is there")
        after = crowd.done
        wait_for(lambda: crowd.done > after + 10 * CLIENTS, "all clients are at work again")
    assert all(isinstance(failure, redis.ConnectionError) for failure in crowd.failures)
    assert len(crowd.failures) <= mine


def test_the_queue_of_a_killed_worker_is_answered(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet(workers=1)
    pid = started.fleet.worker_pids()[0]
    os.kill(pid, signal.SIGSTOP)
    clients = [socket.create_connection(("127.0.0.1", started.port), timeout=10) for _ in range(100)]
    for client in clients:
        client.sendall(b"PING\r\n")
    os.kill(pid, signal.SIGKILL)
    answers = [client.recv(100) for client in clients]
    for client in clients:
        client.close()
    assert answers == [b"+PONG\r\n"] * 100


def test_term_under_load_cuts_no_reply_short(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet()
    with Crowd(CLIENTS, verified(started.port)) as crowd:
        wait_for(lambda: crowd.done > 10 * CLIENTS, "all clients are at work")
        started.fleet.send_signal(signal.SIGTERM)
        assert started.fleet.process.wait(10) == 0
    # A closed connection is what a drain looks like; half a reply would be another error.
    assert {type(failure) for failure in crowd.failures} <= {redis.ConnectionError}


def test_counters_never_go_back(start_redis_fleet: StartRedisFleet) -> None:
    started = start_redis_fleet()
    seen = [0]

    def requests(fleet: RedisFleet) -> int:
        return sum(fleet.fleet.stats()["instances"]["user"]["requests"].values())

    with Crowd(4, verified(started.port)) as crowd:
        wait_for(lambda: crowd.done > 100, "all clients are at work")
        seen.append(requests(started))
        started.fleet.write(started.config + "  connections = 2\n")
        assert started.fleet.reload().accepted
        seen.append(requests(started))
    seen.append(requests(started))
    assert seen == sorted(seen)
    assert seen[-1] >= crowd.done * 2
