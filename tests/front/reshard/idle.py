"""Keys that nobody uses while they move: many, of all types, some with an end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

COUNT = 20_000
TTL_S = 3000
STEP = 500


def fill(client: Any, count: int = COUNT) -> None:
    """Write them."""
    for first in range(0, count, STEP):
        with client.pipeline(transaction=False) as pipeline:
            for number in range(first, first + STEP):
                key, kind = f"idle:{number}", number % 6
                if kind == 0:
                    pipeline.set(key, number)
                elif kind == 1:
                    pipeline.set(key, number, ex=TTL_S)
                elif kind == 2:
                    pipeline.rpush(key, number, "x")
                elif kind == 3:
                    pipeline.hset(key, "f", number)
                elif kind == 4:
                    pipeline.sadd(key, number, "y")
                else:
                    pipeline.zadd(key, {"z": number})
            pipeline.execute()


def check(clients: Sequence[Any], kept: Sequence[set[bytes]], began: float, count: int = COUNT) -> None:
    """Each is at one server, whole, with its time. began: monotonic time before they were written."""
    numbers = range(count)
    wrong = [n for n in numbers if sum(b"idle:%d" % n in keys for keys in kept) != 1]
    assert wrong == [], f"{len(wrong)} keys are not at exactly one server"
    for client, keys in zip(clients, kept, strict=True):
        own = [n for n in numbers if b"idle:%d" % n in keys]
        for first in range(0, len(own), STEP):
            part = own[first : first + STEP]
            with client.pipeline(transaction=False) as pipeline:
                for number in part:
                    _ask(pipeline, number)
                heard = iter(pipeline.execute())
            for number in part:
                assert next(heard) == _wanted(number), number
                ttl = next(heard)
                least = TTL_S - (time.monotonic() - began) - 2
                assert least <= ttl <= TTL_S if number % 6 == 1 else ttl == -1, (number, ttl)


def _ask(pipeline: Any, number: int) -> None:
    key, kind = f"idle:{number}", number % 6
    if kind < 2:
        pipeline.get(key)
    elif kind == 2:
        pipeline.lrange(key, 0, -1)
    elif kind == 3:
        pipeline.hgetall(key)
    elif kind == 4:
        pipeline.smembers(key)
    else:
        pipeline.zrange(key, 0, -1, withscores=True)
    pipeline.ttl(key)


def _wanted(number: int) -> Any:
    text = b"%d" % number
    return [text, text, [text, b"x"], {b"f": text}, {text, b"y"}, [(b"z", float(number))]][number % 6]
