"""What `hyper-proxy demo --once` asks the fleet, with the clients of applications: redis-py, pymemcache and curl."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import redis
from pymemcache.client.base import Client as Memcache
from pymemcache.exceptions import MemcacheError

TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Check:
    """One request: by which client, in words, how to send it, and whether the answer is right."""

    client: str
    words: str
    ask: Callable[[], object]
    is_right: Callable[[Any], bool]


def run_checks(host: str, redis_port: int, memcache_port: int, admin_port: int) -> bool:
    """Send all requests, print each with its answer; were all answers right?"""
    with closing(redis.Redis(host, redis_port, socket_timeout=TIMEOUT_S)) as r:
        memcache = Memcache((host, memcache_port), timeout=TIMEOUT_S, connect_timeout=TIMEOUT_S)
        with closing(memcache):
            checks = [*_both_fronts(r, memcache), *_sidecar(f"http://{host}:{admin_port}/stats")]
            results = [_run(check) for check in checks]
    right = results.count(True)
    print(f"{right} of {len(results)} answers are right", flush=True)
    return right == len(results)


def _run(check: Check) -> bool:
    try:
        answer = check.ask()
    except (OSError, redis.RedisError, MemcacheError, subprocess.SubprocessError, ValueError) as error:
        answer, right = f"{type(error).__name__}: {error}", False
    else:
        right = check.is_right(answer)
    print(f"{'ok   ' if right else 'WRONG'} {check.client:10} {check.words:44} -> {answer!r}")
    return right


def _is(expected: object) -> Callable[[Any], bool]:
    return lambda answer: bool(answer == expected)


def _both_fronts(r: redis.Redis, m: Memcache) -> list[Check]:
    """What one front wrote the other reads."""
    return [
        Check("redis-py", "SET greeting hello EX 600", lambda: r.set("greeting", "hello", ex=600), _is(True)),
        Check("pymemcache", "get greeting", lambda: m.get("greeting"), _is(b"hello")),
        Check("pymemcache", "set answer 42", lambda: m.set("answer", b"42", noreply=False), _is(True)),
        Check("redis-py", "INCR answer", lambda: r.incr("answer"), _is(43)),
        Check("pymemcache", "incr answer 7", lambda: m.incr("answer", 7), _is(50)),
        Check("redis-py", "MSET a 1 b 2 c 3", lambda: r.mset({"a": 1, "b": 2, "c": 3}), _is(True)),
        Check("redis-py", "MGET c nothing a", lambda: r.mget("c", "nothing", "a"), _is([b"3", None, b"1"])),
        Check("pymemcache", "get a b nothing", lambda: m.get_many(["a", "b", "nothing"]), _is({"a": b"1", "b": b"2"})),
        Check("redis-py", "EXPIRE a 100", lambda: r.expire("a", 100), _is(True)),
        Check("redis-py", "TTL a", lambda: r.ttl("a"), lambda seconds: 90 < seconds <= 100),
        Check("pymemcache", "touch a 500", lambda: m.touch("a", 500, noreply=False), _is(True)),
        Check("redis-py", "TTL a", lambda: r.ttl("a"), lambda seconds: 490 < seconds <= 500),
        Check("redis-py", "DEL a b c", lambda: r.delete("a", "b", "c"), _is(3)),
        Check("pymemcache", "get a b c", lambda: m.get_many(["a", "b", "c"]), _is({})),
        Check("redis-py", "LPUSH list x", lambda: _refusal(r, "LPUSH", "list", "x"), lambda text: "not served" in text),
    ]


def _refusal(r: redis.Redis, *words: str) -> str:
    """The beginning of the error that a command gets."""
    try:
        return f"no error, but {r.execute_command(*words)!r}"
    except redis.ResponseError as error:
        return str(error).partition(" (")[0]


def _sidecar(url: str) -> list[Check]:
    program = shutil.which("curl")
    client = "curl" if program else "urllib"
    command = [program or "", "--silent", "--show-error", "--fail", "--max-time", str(TIMEOUT_S), url]

    def fetch() -> str:
        if program:
            body = subprocess.run(command, capture_output=True, check=True, timeout=2 * TIMEOUT_S).stdout
        else:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                body = response.read()
        return _summary(json.loads(body))

    return [Check(client, url, fetch, lambda text: "redis" in text and "memcache" in text)]


def _summary(stats: dict[str, Any]) -> str:
    """The requests of each instance, by class."""
    rows = [f"{name} {json.dumps(row.get('requests'))}" for name, row in sorted(stats["instances"].items())]
    return f"{len(stats['workers'])} workers, requests: " + ", ".join(rows)
