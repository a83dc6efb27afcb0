"""The table of cases. A new one is one row."""

from __future__ import annotations

from dataclasses import dataclass

CLIENTS = 50
KEYSPACE = 100_000
VALUE = "v" * 64
KEY = "key:__rand_int__"  # redis-benchmark puts 12 digits there, another number in every request


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of request; `target` is the ratio to twemproxy that must hold."""

    name: str
    protocol: str  # redis | memcache
    command: tuple[str, ...]  # redis: as redis-benchmark takes it
    keys: int
    pipeline: int
    requests: int  # in one run; about a second's worth
    target: float


CASES = (
    Case("GET", "redis", ("get", KEY), 1, 1, 100_000, 1.2),
    Case("SET", "redis", ("set", KEY, VALUE), 1, 1, 100_000, 1.2),
    Case("GET -P 16", "redis", ("get", KEY), 1, 16, 400_000, 0.6),
    Case("MGET 10", "redis", ("mget", *[KEY] * 10), 10, 1, 50_000, 0.8),
    Case("MGET 100", "redis", ("mget", *[KEY] * 100), 100, 1, 12_000, 0.7),
    Case("memcache get", "memcache", (), 1, 1, 100_000, 1.2),
    Case("memcache get 100", "memcache", (), 100, 1, 12_000, 0.7),
)
