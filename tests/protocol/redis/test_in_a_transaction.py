"""Inside MULTI a client reaches one server, and of it nothing that the proxy would not have shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from tests.kit import servers
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running

SECRET = "what only the proxy knows"
CONFIG = """\
[proxy]
workers = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  password = "{secret}"
  servers = ["{server}"]
"""


@pytest.fixture
def client(start_fleet: Callable[[str], Fleet], own: Callable[[Running], Running]) -> Iterator[redis.Redis]:
    server = own(servers.redis_server("--requirepass", SECRET))
    port = free_port()
    start_fleet(CONFIG.format(port=port, secret=SECRET, server=server.address))
    with redis.Redis(port=port) as connected:
        yield connected


@pytest.mark.parametrize(
    "words",
    [
        "CONFIG GET requirepass", "CLIENT SETNAME x", "CLIENT TRACKING ON", "CLIENT NO-EVICT ON", "DEBUG SLEEP 0",
        "INFO server", "READONLY", "ACL WHOAMI",
    ],
)  # fmt: skip
def test_what_the_proxy_answers_itself_does_not_reach_the_server(client: redis.Redis, words: str) -> None:
    with client.pipeline(transaction=True) as pipe:
        pipe.execute_command(*words.split())
        with pytest.raises(redis.ResponseError, match="not allowed inside a transaction"):
            pipe.execute()


def test_what_a_server_answers_alike_is_queued(client: redis.Redis) -> None:
    with client.pipeline(transaction=True) as pipe:
        for words in (["PING"], ["ECHO", "x"], ["SET", "a", "1"], ["GET", "a"], ["TIME"]):
            pipe.execute_command(*words)
        assert pipe.execute()[:4] == [True, b"x", True, b"1"]
