"""Configurations that the tests of this folder start from, and the change of one piece of text."""

from __future__ import annotations

from hyper_proxy.common.errors import Finding
from hyper_proxy.config.load import inspect_text

PLAIN = """\
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:6380"]

[[instance.level]]
storage = "redis"
servers = ["10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b"]
"""

FULL = """\
# every kind of value, in every way of writing it
[proxy]
workers = 2
drain_timeout_s = 2.5
prepare_timeout_s = 5

[admin]
listen = "127.0.0.1:22122"

[log]
file = "/tmp/hyper_proxy.log"
level = "debug"
roll = "size"
max_bytes = "64MB"
keep = 3

[[instance]]
name = "user"
protocol = "redis"
listen = [
  "0.0.0.0:6380",
  "[::1]:6381",            # with a comment, "a string" and ]
  "unix:/tmp/user.sock",
]
allow = ["FLUSHALL", "keys"]
on_partial = "nil"
username = "app"
password = 'p"a[#s'
dbs = 4

  [instance.limits]
  max_key_bytes = 1024
  max_value_bytes = "1 MB"
  max_arguments = 2000
  max_request_bytes = "2MB"
  max_pipeline = 50
  max_clients = 100
  max_line_bytes = "64KB"
  idle_timeout_s = 0.5
  write_timeout_ms = 1000

  [[instance.level]]
  storage = "redis"
  hash = "md5"
  distribution = "ketama"
  hash_tag = "{}"
  servers = [
    "10.0.0.1:6379:1 a",
    "redis-2.example.com:6379:2 b", "[fd00::3]:6379:1 c",
    "unix:/run/d.sock:1 d",
  ]
  connections = 2
  username = "proxy"
  password = "secret"
  db = 3
  max_pending_bytes = 1_000_000
  dns_ttl_s = 10
  timeout = { connect_ms = 20, read_ms = 100, queue_ms = 50 }
  backoff.base_ms = 10
  backoff.max_ms = 1000

[[instance]]
name = "page"
protocol = "memcache"
listen = ["127.0.0.1:11311"]
[[instance.level]]
storage = "memcache"
distribution = "modula"
servers = ["10.0.0.3:11211", "10.0.0.4:11211:2"]

[[instance]]
name = "feed"
protocol = "memcache"
listen = ["127.0.0.1:11312"]
level = [{ storage = "lushan", servers = ["10.0.0.5:9999"], lushan_db = { hash = "crc32a", count = 8 } }]

[[instance]]
name = "tags"
protocol = "memcache"
listen = ["127.0.0.1:11313"]
[[instance.level]]
storage = "lushan"
servers = ["10.0.0.6:9999"]
[instance.level.lushan_db]
separator = ":"
default = 0
map.user = 1
map."a b" = 2

[[instance]]
name = "local"
protocol = "redis"
listen = ["127.0.0.1:6390"]
[[instance.level]]
storage = "sqlite"
servers = ["data/local.db"]

[[instance]]
name = "profile"
protocol = "redis"
listen = ["127.0.0.1:6391"]

  [[instance.level]] # of SQL
  storage = "mysql"
  servers = ["10.0.0.7:3306 r"]
  writers = ["10.0.0.8:3306 w"]
  max_connections = 4
  username = "reader"
  password = "x"
  database = "app"
  table = { name = "user.profile", key = "uid", value = "body", expires = "until" }
  where = { deleted = 0 }
"""


def change(text: str, old: str, new: str) -> str:
    """The text with the first `old` replaced; it must be there."""
    assert old in text, f"{old!r} is not in the text"
    return text.replace(old, new, 1)


def line_of(text: str, piece: str) -> int:
    """The line of the first occurrence of `piece`."""
    assert piece in text, f"{piece!r} is not in the text"
    return text.count("\n", 0, text.index(piece)) + 1


def findings(text: str) -> list[Finding]:
    """All findings about a text."""
    return inspect_text(text, "t.toml")[1]


def codes(text: str) -> list[tuple[str, int]]:
    """Of all findings about a configuration, with their lines."""
    return [(finding.code, finding.line) for finding in findings(text)]


# Variants of PLAIN: another instance, a second level, a route, two rooms; and what they are made of.
MORE = '[[instance]]\nname = "other"\nprotocol = "redis"\nlisten = ["127.0.0.1:7000"]\n'
LEVELS = f'{PLAIN}\n[[instance.level]]\nstorage = "sqlite"\nservers = ["keys.db"]\n'
FILE = '[[instance.level]]\nstorage = "sqlite"\nservers = ["other.db"]\n'
SERVERS = '"10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b"'
ROUTE = 'route = { prefix = { "a" = "main", "" = "spare" } }'
POOL = '[[instance.level.pool]]\nname = "spare"\nservers = ["10.0.0.3:6379 c"]\n'
POOLED = change(PLAIN, 'storage = "redis"', f'storage = "redis"\n{ROUTE}') + POOL
ROOMED = change(PLAIN, SERVERS, f'{SERVERS}, "----", "10.1.0.1:6379:1 a", "10.1.0.2:6379:1 b"')
ROOMED += '[instance.level.rooms]\nwrites = "single"\n'
