"""The memcache storage: greetings, lanes, and what a reload takes over."""

from __future__ import annotations

import pytest

from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import Level
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.storage.memcache import MemcacheGreeting, MemcacheStorage
from hyper_proxy.storage.redis import RedisStorage

CONFIG = """
[[instance]]
name = "mc"
protocol = "memcache"
listen = ["127.0.0.1:21311"]
[[instance.level]]
storage = "memcache"
connections = 2
servers = [{servers}]
"""


def level(*servers: str) -> Level:
    quoted = ", ".join(f'"{server}"' for server in servers)
    return load_text(CONFIG.format(servers=quoted), "x.toml").instances[0].levels[0]


def greet(*answers: bytes) -> list[bytes]:
    """What the greeting asks a server that gives these answers."""
    asked: list[bytes] = []

    def ask(request: bytes) -> bytes:
        asked.append(request)
        return answers[len(asked) - 1]

    MemcacheGreeting().greet(ask)
    return asked


def test_a_server_must_say_its_version_twice() -> None:
    assert greet(b"VERSION 1.6.18\r\n", b"VERSION 1.6.18\r\n") == [b"version\r\n"] * 2
    for answers in [(b"ERROR\r\n",), (b"VERSION 1.6.18\r\n", b"ERROR\r\n"), (b"VERSION 1.6.18\r\n", b"END\r\n")]:
        with pytest.raises(ReplyError, match="version was answered"):
            greet(*answers)


def test_a_client_always_has_the_same_lanes_and_clients_are_spread() -> None:
    storage = MemcacheStorage("mc", level("127.0.0.1:1", "127.0.0.1:2"))
    assert storage.lanes(5) is storage.lanes(5)
    assert storage.lanes(7) is storage.lanes(5)
    assert storage.lanes(6) is not storage.lanes(5)
    assert len(storage.lanes(6)) == 2


def test_a_reload_takes_over_the_nodes_that_stay() -> None:
    old = MemcacheStorage("mc", level("127.0.0.1:1", "127.0.0.1:2"))
    new = MemcacheStorage("mc", level("127.0.0.1:2", "127.0.0.1:3"), old)
    (_, kept), (first, second) = old.nodes, new.nodes
    assert first is kept
    assert second not in list(old.nodes)


def test_the_nodes_of_another_kind_of_storage_are_not_taken_over() -> None:
    rows = level("127.0.0.1:1")
    other = RedisStorage("mc", rows)
    assert list(MemcacheStorage("mc", rows, other).nodes) != list(other.nodes)
