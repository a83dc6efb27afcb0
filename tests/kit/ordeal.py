"""Many clients that verify every reply, while something happens to the nodes: does a wrong reply ever reach one?

Every value names its key, so a reply that belongs to another request shows. An error is a right answer of a proxy whose
node is sick; a value of another key, or a reply of the wrong kind, never is.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.kit.clients import Crowd
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.fakes.redis import value_of
from tests.kit.servers import Running
from tests.kit.wait import wait_for

IMPOSTORS = ("garbage", "reset", "half", "too_much", "double", "silent", "hangs_up", "endless", "closes")
"""How a server that takes a node's place may behave."""

KINDS = ("killed", "frozen", *IMPOSTORS)

KEYS = 2000
PAUSE_S = 0.25  # that a misfortune lasts, and that the node then has to itself


class Verifier:
    """What each client does over and over: a few requests whose replies are checked; `wrong` lists those that were."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.wrong: list[str] = []
        self.after: list[Counter[str]] = []

    def make_step(self, number: int) -> Callable[[], None]:
        """For tests.kit.clients.Crowd."""
        rng = random.Random(number)
        client = redis.Redis(port=self.port, socket_timeout=20, retry=Retry(NoBackoff(), 0), protocol=2 + number % 2)
        seen: Counter[str] = Counter()
        self.after.append(seen)
        kinds = (self._get, self._set, self._mget, self._pipeline)

        def step() -> None:
            rng.choice(kinds)(client, rng, seen)

        return step

    def check(self, key: str, value: object, seen: Counter[str]) -> None:
        """A value that came for a key, None when there was none, or an error."""
        if isinstance(value, redis.RedisError):
            seen["errors"] += 1
        elif value is None:
            seen["nils"] += 1
        elif value == value_of(key.encode()):
            seen["values"] += 1
        else:
            self.wrong.append(f"{key}: {value!r}")

    def _key(self, rng: random.Random) -> str:
        return f"key:{rng.randrange(KEYS)}"

    def _get(self, client: redis.Redis, rng: random.Random, seen: Counter[str]) -> None:
        key = self._key(rng)
        try:
            value: object = client.get(key)
        except redis.ResponseError as error:
            value = error
        self.check(key, value, seen)
        seen["requests"] += 1

    def _set(self, client: redis.Redis, rng: random.Random, seen: Counter[str]) -> None:
        key = self._key(rng)
        seen["requests"] += 1
        try:
            done = client.set(key, value_of(key.encode()))
        except redis.ResponseError:
            seen["errors"] += 1
            return
        if done is not True:
            self.wrong.append(f"SET {key}: {done!r}")

    def _mget(self, client: redis.Redis, rng: random.Random, seen: Counter[str]) -> None:
        keys = [self._key(rng) for _ in range(rng.randrange(1, 30))]
        seen["requests"] += 1
        try:
            values = client.mget(keys)
        except redis.ResponseError:
            seen["errors"] += 1
            return
        if len(values) != len(keys):
            self.wrong.append(f"MGET of {len(keys)} keys: {len(values)} values")
        for key, value in zip(keys, values, strict=False):
            self.check(key, value, seen)

    def _pipeline(self, client: redis.Redis, rng: random.Random, seen: Counter[str]) -> None:
        keys = [self._key(rng) for _ in range(rng.randrange(1, 40))]
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.get(key)
        seen["requests"] += len(keys)
        for key, value in zip(keys, pipe.execute(raise_on_error=False), strict=True):
            self.check(key, value, seen)

    def total(self) -> Counter[str]:
        """Of all clients."""
        return sum(self.after, Counter())


def misfortunes(nodes: list[Running], rng: random.Random) -> Iterator[tuple[Running, str]]:
    """One after the other, for ever: who is next, and what happens to it; every kind once before any comes again."""
    while True:
        for turn, kind in enumerate(rng.sample(KINDS, len(KINDS))):
            yield nodes[(turn + rng.randrange(len(nodes))) % len(nodes)], kind


def _befall(node: Running, kind: str) -> Callable[[], None]:
    if kind == "frozen":
        node.freeze()
        return node.thaw
    node.kill()
    if kind == "killed":
        return node.start
    # It greets as it should, half of the time: then it misbehaves towards clients only.
    impostor = FakeServer(REDIS, kind, node.port, polite=random.random() < 0.5)

    def end() -> None:
        impostor.stop()
        node.start()

    return end


@dataclass(frozen=True, slots=True)
class Ordeal:
    """What came of it: all counts, the wrong replies, what clients met beside replies, how often what happened."""

    seen: Counter[str]
    wrong: list[str]
    failures: list[Exception]
    happened: Counter[str]


def run(port: int, nodes: list[Running], clients: int, requests: int, times: int, seed: int) -> Ordeal:
    """Until so many requests were verified and every misfortune has happened so many times, or a reply was wrong."""
    verifier = Verifier(port)
    happened: Counter[str] = Counter()
    with Crowd(clients, verifier.make_step) as crowd:
        for node, kind in misfortunes(nodes, random.Random(seed)):
            happened[kind] += 1
            end = _befall(node, kind)
            try:
                _pass(PAUSE_S)
            finally:
                end()
            _pass(PAUSE_S)
            enough = happened.total() >= times * len(KINDS) and verifier.total()["requests"] >= requests
            if enough or verifier.wrong:
                break
        wait_for(lambda: all_well(port), "all nodes are back")
    return Ordeal(verifier.total(), verifier.wrong, crowd.failures, happened)


def all_well(port: int) -> bool:
    """Does every node answer?"""
    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 0))
    with suppress(redis.RedisError):
        return client.mset({f"key:{number}": value_of(b"key:%d" % number) for number in range(KEYS)}) is True
    return False


def _pass(seconds: float) -> None:
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end, "time passes", seconds + 5)
