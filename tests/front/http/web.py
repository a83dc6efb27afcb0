"""A fleet with the HTTP front, and a client of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import redis

from tests.kit.fleet import Fleet
from tests.kit.http import Answer, ask
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port

CONFIG = """[proxy]
workers = {workers}
drain_timeout_s = 1
[[instance]]
name = "web"
protocol = "http"
listen = ["127.0.0.1:{http}"]
  [instance.limits]
  max_value_bytes = 100000
  max_line_bytes = 4000
  max_key_bytes = 100
  {limits}
{level}
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{redis}"]
{level}
"""
PUT = b"PUT /v1/web/a HTTP/1.1\r\nHost: x\r\n"
CHUNKED = PUT + b"Transfer-Encoding: chunked\r\n\r\n"


class Web:
    """A fleet and one connection to its HTTP instance that stays open; a redis client of the same keys."""

    def __init__(self, stack: ExitStack, folder: Path, more: str = "", limits: str = "", workers: int = 2) -> None:
        """more: further lines of the configuration; limits: of its limits."""
        self.port, redis_port = free_port(), free_port()
        settings = {"http": self.port, "redis": redis_port, "limits": limits, "workers": workers}
        self.fleet = stack.enter_context(Fleet(CONFIG.format(level=sqlite_level(), **settings) + more, folder))
        self.redis = stack.enter_context(redis.Redis(port=redis_port))
        self.connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        stack.callback(self.connection.close)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request; names of headers are written with _."""
        return ask(self.connection, method, path, body, headers)

    def post(self, path: str, **content: object) -> Answer:
        """A request of JSON."""
        return self.ask("POST", path, json.dumps(content).encode(), content_type="application/json")

