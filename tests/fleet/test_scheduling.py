"""`[proxy] scheduling`: what the kernel is told of each worker, at its start and by a reload."""

from __future__ import annotations

import os
from collections.abc import Callable

import psutil

from tests.fleet.conftest import RedisFleet


def policies(running: RedisFleet) -> list[int]:
    """The scheduling policy of each worker."""
    children = psutil.Process(running.fleet.process.pid).children()
    workers = [child for child in children if "worker" in " ".join(child.cmdline())]
    return [os.sched_getscheduler(worker.pid) for worker in workers]


def test_workers_are_batches_unless_the_file_says_otherwise(start_redis_fleet: Callable[..., RedisFleet]) -> None:
    running = start_redis_fleet()
    assert policies(running) == [os.SCHED_BATCH] * 2
    assert os.sched_getscheduler(running.fleet.process.pid) == os.SCHED_OTHER
    running.fleet.write(running.config.replace("[proxy]", '[proxy]\nscheduling = "normal"'))
    assert running.fleet.reload().accepted
    assert policies(running) == [os.SCHED_OTHER] * 2
    running.fleet.write(running.config)
    assert running.fleet.reload().accepted
    assert policies(running) == [os.SCHED_BATCH] * 2
    assert "scheduling_refused" not in running.fleet.read_log()
