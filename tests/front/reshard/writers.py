"""Clients with a model of their own: each knows what every one of its keys must be, and checks every reply.

A request that fails "not sent" must not have been done; of one that fails otherwise nobody can say whether it was, so
the key is read afterwards and must be one of the two.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.kit.wait import wait_for

KEYS = 12  # of each kind, for each writer
KINDS = "nlhszp"
READ: dict[str, Callable[[Any, str], Any]] = {
    "n": lambda client, key: client.get(key),
    "l": lambda client, key: client.lrange(key, 0, -1),
    "h": lambda client, key: client.hgetall(key),
    "s": lambda client, key: client.smembers(key),
    "z": lambda client, key: dict(client.zrange(key, 0, -1, withscores=True)),
    "p": lambda client, key: (client.get(f"{{{key}}}:sum"), client.lrange(f"{{{key}}}:all", 0, -1)),
}
EMPTY: dict[str, Any] = {"n": None, "l": [], "h": {}, "s": set(), "z": {}, "p": (None, [])}


class Writer(Thread):
    """Uses its own keys until it is told to stop."""

    def __init__(self, port: int, number: int, stop: Event) -> None:
        super().__init__()
        self.client: Any = redis.Redis(port=port, socket_timeout=20, retry=Retry(NoBackoff(), 0))
        self.random = random.Random(number)
        self.stop = stop
        self.model = {f"w{number}:{kind}{index}": EMPTY[kind] for kind in KINDS for index in range(KEYS)}
        self.done = 0
        self.faults: list[str] = []
        self.errors: list[str] = []

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                if self.random.random() < 0.1:
                    self._read_many()
                else:
                    self._change(self.random.choice(list(self.model)))
                self.done += 1
        except Exception as error:  # noqa: BLE001  whatever ends it is a fault of the test's subject or its own
            self.faults.append(repr(error))

    def _change(self, key: str) -> None:
        kind = key.partition(":")[2][0]
        before = self.model[key]
        after, wanted, act = getattr(self, f"_{kind}")(key, before)
        try:
            heard = act()
        except redis.RedisError as error:
            self._after_error(kind, key, after, error)
            return
        self.model[key] = after
        if heard != wanted:
            self.faults.append(f"{key} {before!r} -> {after!r}: {heard!r} instead of {wanted!r}")

    def _after_error(self, kind: str, key: str, after: Any, error: redis.RedisError) -> None:
        self.errors.append(str(error))
        possible = [self.model[key]] if "was not sent" in str(error) else [self.model[key], after]
        found = None
        while not self.stop.is_set():
            try:
                found = (READ[kind](self.client, key),)
                break
            except redis.RedisError as again:
                self.errors.append(str(again))
                self.stop.wait(0.01)
        if found is None:
            return
        if found[0] not in possible:
            self.faults.append(f"{key}: {found[0]!r}, none of {possible!r}, after {error}")
        self.model[key] = found[0]

    def _read_many(self) -> None:
        keys = self.random.sample([key for key in self.model if ":n" in key], 6)
        try:
            heard = self.client.mget(keys)
        except redis.RedisError as error:
            self.errors.append(str(error))
            return
        if heard != [self.model[key] for key in keys]:
            self.faults.append(f"MGET {keys}: {heard} instead of {[self.model[key] for key in keys]}")

    def _n(self, key: str, value: bytes | None) -> tuple[Any, Any, Callable[[], Any]]:
        which = self.random.randrange(6)
        if which == 0:
            return None, int(value is not None), lambda: self.client.delete(key)
        if which == 1:
            return b"7", True, lambda: self.client.set(key, 7, ex=3600)
        if which == 2:
            return value, value, lambda: self.client.get(key)
        number = int(value or 0) + 1
        return b"%d" % number, number, lambda: self.client.incr(key)

    def _l(self, key: str, value: list[bytes]) -> tuple[Any, Any, Callable[[], Any]]:
        item = b"%d" % self.done
        if self.random.random() < 0.5 and len(value) < 20:
            return [item, *value], len(value) + 1, lambda: self.client.lpush(key, item)
        return value[:-1], value[-1] if value else None, lambda: self.client.rpop(key)

    def _h(self, key: str, value: dict[bytes, bytes]) -> tuple[Any, Any, Callable[[], Any]]:
        field, item = b"f%d" % self.random.randrange(5), b"%d" % self.done
        if self.random.random() < 0.7:
            return {**value, field: item}, int(field not in value), lambda: self.client.hset(key, field, item)
        rest = {name: kept for name, kept in value.items() if name != field}
        return rest, int(field in value), lambda: self.client.hdel(key, field)

    def _s(self, key: str, value: set[bytes]) -> tuple[Any, Any, Callable[[], Any]]:
        item = b"%d" % self.random.randrange(6)
        if self.random.random() < 0.5:
            return value | {item}, int(item not in value), lambda: self.client.sadd(key, item)
        return value - {item}, int(item in value), lambda: self.client.srem(key, item)

    def _z(self, key: str, value: dict[bytes, float]) -> tuple[Any, Any, Callable[[], Any]]:
        item = b"%d" % self.random.randrange(5)
        score = value.get(item, 0.0) + 1
        return {**value, item: score}, score, lambda: self.client.zincrby(key, 1, item)

    def _p(self, key: str, value: tuple[bytes | None, list[bytes]]) -> tuple[Any, Any, Callable[[], Any]]:
        total, items = value
        number = int(total or 0) + 1
        watch = self.random.random() < 0.5

        def act() -> Any:
            with self.client.pipeline(transaction=True) as pipeline:
                if watch:
                    pipeline.watch(f"{{{key}}}:sum")
                    if pipeline.get(f"{{{key}}}:sum") != total:
                        self.faults.append(f"{key}: not {total!r} under WATCH")
                    pipeline.multi()
                pipeline.incr(f"{{{key}}}:sum")
                pipeline.rpush(f"{{{key}}}:all", number)
                return pipeline.execute()

        return (b"%d" % number, [*items, b"%d" % number]), [number, len(items) + 1], act


class Writers:
    """Some of them, at work from the beginning on."""

    def __init__(self, port: int, count: int) -> None:
        self.stop = Event()
        self.all = [Writer(port, number, self.stop) for number in range(count)]
        for writer in self.all:
            writer.start()

    def go_on(self, times: int = 50) -> None:
        """Until each has done so many things more."""
        goals = {writer: writer.done + times for writer in self.all}
        wait_for(lambda: all(one.done >= goal or not one.is_alive() for one, goal in goals.items()), "all go on", 40)

    def errors(self) -> list[str]:
        """What they were told so far."""
        return [error for writer in self.all for error in writer.errors]

    def end(self) -> dict[str, Any]:
        """What every key must be; AssertionError when they have seen what must not be."""
        self.stop.set()
        for writer in self.all:
            writer.join()
        assert [fault for writer in self.all for fault in writer.faults] == []
        return {key: value for writer in self.all for key, value in writer.model.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop.set()
        for writer in self.all:
            writer.join()


def read(client: Any, key: str) -> Any:
    """A key as the model has it."""
    return READ[key.partition(":")[2][0]](client, key)
