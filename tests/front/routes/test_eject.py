"""eject: the keys of a server that is down go to where twemproxy would have them without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from hyper_proxy.storage.redis import encode
from tests.front.routes.conftest import Routed
from tests.kit.ports import accepts
from tests.kit.servers import nutcracker
from tests.kit.wait import wait_for

KEYS = [f"key{number}" for number in range(100)]
POOL = """\
shop:
  listen: 127.0.0.1:{port}
  hash: fnv1a_64
  distribution: ketama
  auto_eject_hosts: true
  server_failure_limit: 1
  server_retry_timeout: 600000
  timeout: 500
  redis: {redis}
  servers:
{servers}
"""


def _where(proxy: Routed) -> dict[str, int]:
    """Which server of those that are up has a key."""
    up = {index: proxy.to(server.port) for index, server in enumerate(proxy.pools["main"]) if accepts(server.port)}
    return {key: index for index, client in up.items() for key in KEYS if client.get(key) is not None}


def _storing(kind: str, key: str) -> bytes:
    return encode("SET", key, "x") if kind == "redis" else f"set {key} 0 0 1\r\nx\r\n".encode()


def _clear(proxy: Routed) -> None:
    for server in proxy.pools["main"]:
        if accepts(server.port):
            client = proxy.to(server.port)
            client.flushall() if proxy.kind == "redis" else client.flush_all()


def test_keys_are_where_twemproxy_has_them(routed: Callable[..., Routed], kind: str, tmp_path: Path) -> None:
    proxy = routed({"main": 4}, '{ eject = "main" }')
    client = proxy.client()
    for key in KEYS:
        client.set(key, "x")
    before = _where(proxy)
    proxy.pools["main"][1].kill()
    for key in KEYS:
        client.set(key, "x")
    ours = _where(proxy)
    assert {key for key in KEYS if before[key] != ours[key]} == {key for key in KEYS if before[key] == 1} != set()
    _clear(proxy)
    with ExitStack() as stack:
        servers = "\n".join(f"   - {server.address}:1 main{at}" for at, server in enumerate(proxy.pools["main"]))
        text = POOL.replace("{redis}", str(kind == "redis").lower()).replace("{servers}", servers)
        theirs = stack.enter_context(nutcracker(text, tmp_path))

        def all_stored() -> bool:
            """It fails once, and then knows."""
            replies = [theirs.ask(_storing(kind, key)) for key in KEYS]
            return all(reply.startswith((b"+OK", b"STORED")) for reply in replies)

        wait_for(all_stored, "twemproxy has ejected the server")
        assert _where(proxy) == ours


def test_the_server_gets_its_keys_back(routed: Callable[..., Routed]) -> None:
    proxy = routed({"main": 3}, '{ eject = "main" }')
    client = proxy.client()
    for key in KEYS:
        client.set(key, "x")
    before = _where(proxy)
    proxy.pools["main"][0].kill()
    for key in KEYS:
        client.set(key, "x")
    proxy.pools["main"][0].start()

    def home_again() -> bool:
        _clear(proxy)
        for key in KEYS:
            client.set(key, "x")
        return _where(proxy) == before

    wait_for(home_again, "every key is at home")
