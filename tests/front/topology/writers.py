"""Clients that verify every reply while something happens to the servers."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

import redis


class Writer(Thread):
    """Counts its own keys up and reads each one back, in pipelines of two kinds; notes what is not as it must be."""

    def __init__(self, port: int, keys: list[str], stop: Event) -> None:
        super().__init__()
        self.client: Any = redis.Redis(port=port)
        self.keys = keys
        self.stop = stop
        self.count = 0
        self.faults: list[str] = []

    def run(self) -> None:
        while not self.stop.is_set():
            self.count += 1
            try:
                self.round(b"%d" % self.count)
            except redis.RedisError as error:
                self.faults.append(repr(error))

    def round(self, now: bytes) -> None:
        with self.client.pipeline(transaction=False) as pipeline:
            for key in self.keys:
                pipeline.incr(key)
                pipeline.get(key)
            heard = pipeline.execute()
        wanted = [self.count, now] * len(self.keys)
        if heard != wanted:
            self.faults.append(f"{wanted[0]}: {heard}")
        if self.client.mget(self.keys) != [now] * len(self.keys):
            self.faults.append(f"MGET: not all are {now!r}")
        self.client.rpush(f"{{{self.keys[0]}}}:list", now)
