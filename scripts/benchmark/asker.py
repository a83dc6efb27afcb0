"""One process of an application that reads keys for the first time: from redis alone, or from redis and then MySQL.

    python -m scripts.benchmark.asker REDIS_PORT MYSQL_PORT FIRST COUNT KEYS_PER_REQUEST      MYSQL_PORT 0: redis alone

Prints a line when it is connected, and waits for one before it asks: all processes begin at the same time. At last it
prints the moments of begin and end, and the CPU time between them, in seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import pymysql
import redis

from scripts.benchmark.cases import VALUE
from tests.kit.mariadb import DATABASE, PASSWORD, USER

TTL_S = 300


def name(number: int) -> str:
    """The key of this number."""
    return f"key:{number:012}"


def by_itself(cache: redis.Redis, cursor: pymysql.cursors.Cursor, keys: list[str]) -> Sequence[object]:
    """Cache first, database behind, write-back: what applications do without a proxy."""
    found = dict(zip(keys, cache.mget(keys) if len(keys) > 1 else [cache.get(keys[0])], strict=True))
    missed = [key for key, value in found.items() if value is None]
    if missed:
        holders = ", ".join(["%s"] * len(missed))
        cursor.execute(f"SELECT k, v FROM kv WHERE k IN ({holders})", missed)
        below = {key.decode(): value for key, value in cursor.fetchall()}
        found |= below
        with cache.pipeline(transaction=False) as pipeline:
            for key, value in below.items():
                pipeline.set(key, value, ex=TTL_S, nx=True)
            pipeline.execute()
    return [found[key] for key in keys]


def main() -> None:
    """Ask for each key once."""
    redis_port, mysql_port, first, count, size = map(int, sys.argv[1:])
    cache = redis.Redis(port=redis_port)
    cache.ping()
    cursor = None
    if mysql_port:
        database = pymysql.connect(
            host="127.0.0.1", port=mysql_port, user=USER, password=PASSWORD, database=DATABASE, autocommit=True
        )
        cursor = database.cursor()
    print("connected", flush=True)
    sys.stdin.readline()
    began, used = time.monotonic(), time.process_time()
    for start in range(first, first + count, size):
        keys = [name(number) for number in range(start, start + size)]
        values: Sequence[object]
        if cursor is not None:
            values = by_itself(cache, cursor, keys)
        else:
            values = cache.mget(keys) if size > 1 else [cache.get(keys[0])]
        if values != [VALUE.encode()] * size:
            raise RuntimeError(f"{keys[0]}: {values[0]!r}")
    print(began, time.monotonic(), time.process_time() - used)


if __name__ == "__main__":
    main()
