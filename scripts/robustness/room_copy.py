"""A room comes back empty, and all keys are copied to it while clients write: how fast, and do they suffer?"""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from tests.kit.rooms import SIZE, Site, Writer
from tests.kit.wait import wait_for

VALUE = "x" * 100
PIPELINE = 1000
NORMAL_S = 2.0  # so long the clients are watched before
MOST_S = 600.0


def copy_back(stack: ExitStack, folder: Path, options: str, keys: int, clients: int) -> str:
    """What was seen of redis-servers with so many keys in each of two rooms."""
    site = Site(stack, folder, "redis", options)
    client = site.client()
    for start in range(0, keys, PIPELINE):
        with client.pipeline(transaction=False) as pipeline:
            for key in range(start, min(start + PIPELINE, keys)):
                pipeline.set(f"key:{key}", VALUE)
            pipeline.execute()
    site.wait_until_ready(1)
    stopping = Event()
    writers = [Writer(site.client(), index, stopping) for index in range(clients)]
    try:
        time.sleep(NORMAL_S)
        before = _slowest(writers)
        site.kill(0, "kill")
        site.wait_until_served_by(1)
        _slowest(writers)
        site.revive(0, "kill")
        wait_for(lambda: _copied(site), "copying begins", 20)
        began, first = time.monotonic(), _copied(site)
        wait_for(lambda: _copied(site) >= keys, "all are copied", MOST_S)
        per_s = (keys - first) / (time.monotonic() - began)
        during = _slowest(writers)
        site.wait_until_served_by(0)
    finally:
        stopping.set()
        for writer in writers:
            writer.thread.join()
    errors = sum(len(writer.errors) for writer in writers)
    slowest = f"slowest step of a client {during:.3f} s, before the death {before:.3f} s"
    return f"redis, mirror: {keys} keys came back at {per_s:.0f} in a second, {slowest}, errors {errors}"


def _copied(site: Site) -> int:
    return sum(site.stat(f"n{index}", "copied") for index in range(SIZE))


def _slowest(writers: list[Writer]) -> float:
    """Since it was asked last."""
    slowest = max(writer.slowest for writer in writers)
    for writer in writers:
        writer.slowest = 0.0
    return slowest
