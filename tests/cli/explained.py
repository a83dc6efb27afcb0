"""The instances that the tests of `explain` ask about, and how they ask."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hyper_proxy.cli.main import main

CONFIG = """\
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:6380"]
allow = ["FLUSHALL", "FLUSHDB"]
  [[instance.level]]
  storage = "redis"
  hash_tag = "{}"
  db = 2
  servers = ["10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b", "10.0.0.3:6379:1 c"]
[[instance]]
name = "drawn"
protocol = "redis"
listen = ["127.0.0.1:6381"]
  [[instance.level]]
  storage = "redis"
  distribution = "random"
  servers = ["10.0.0.1:6379", "10.0.0.2:6379"]
[[instance]]
name = "file"
protocol = "redis"
listen = ["127.0.0.1:6382"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["/var/lib/x.db"]
[[instance]]
name = "page"
protocol = "memcache"
listen = ["127.0.0.1:11311"]
  [[instance.level]]
  storage = "memcache"
  servers = ["10.0.0.1:11211:1 a", "unix:/run/b.sock:1 b", "10.0.0.3:11211:1 c"]
[[instance]]
name = "feed"
protocol = "memcache"
listen = ["127.0.0.1:11312"]
  [[instance.level]]
  storage = "lushan"
  servers = ["10.0.0.1:9999:1 a", "10.0.0.2:9999:1 b"]
  lushan_db = { separator = ":", map = { user = 1, feed = 2 } }
[[instance]]
name = "flushed"
protocol = "memcache"
listen = ["127.0.0.1:11314"]
allow = ["flush_all"]
  [[instance.level]]
  storage = "memcache"
  servers = ["10.0.0.1:11211:1 a", "10.0.0.2:11211:1 b"]
[[instance]]
name = "filepage"
protocol = "memcache"
listen = ["127.0.0.1:11313"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["/var/lib/x.db"]
[[instance]]
name = "web"
protocol = "http"
listen = ["127.0.0.1:8080"]
limits = { max_key_bytes = 100, max_arguments = 16 }
  [[instance.level]]
  storage = "sqlite"
  servers = ["/var/lib/x.db"]
[[instance]]
name = "shelf"
protocol = "http"
listen = ["127.0.0.1:8081"]
  [[instance.level]]
  storage = "lushan"
  servers = ["10.0.0.1:9999:1 l"]
  lushan_db = { separator = ":", map = { user = 1 } }
  [[instance.level]]
  storage = "redis"
  servers = ["10.0.0.1:6379:1 above"]
  db = 3
  [[instance.level]]
  storage = "redis"
  servers = ["10.0.0.1:6379:1 below"]
  db = 4
[[instance]]
name = "table"
protocol = "redis"
listen = ["127.0.0.1:6383"]
  [[instance.level]]
  storage = "mysql"
  servers = ["10.0.0.1:3306 a", "10.0.0.2:3306 b", "10.0.0.3:3306 c"]
  username = "proxy"
  table = { name = "user.profile", key = "uid", value = "body", expires = "until" }
"""


def ask(file: str, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What `explain --json` says of a request."""
    assert main(["explain", "-c", file, "--json", *words]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer
