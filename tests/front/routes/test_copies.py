"""Routes of a level above another: whoever may answer a read is told of every write, whichever servers are out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from hyper_proxy.storage.cache import MARK
from tests.front.routes.conftest import READ_MS, START, TIMES
from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

TWO = '["main", "spare"]'
ROUTES = {
    "failover": f"{{ failover = {TWO} }}",
    "eject": '{ eject = "main" }',
    "all": f"{{ all = {TWO} }}",
    "any": f"{{ any = {TWO} }}",
    "fastest": f"{{ fastest = {TWO} }}",
    "majority": '{ majority = ["main", "spare", "third"] }',
    "class": f"{{ class = {{ read = {{ failover = {TWO} }}, write = {{ failover = {TWO} }} }} }}",
    "prefix": f'{{ prefix = {{ "key" = {{ failover = {TWO} }}, "" = "main" }} }}',
    "shadow": f'{{ shadow = "third", of = {{ failover = {TWO} }} }}',
    "nested": '{ failover = ["main", { any = ["spare", "third"] }] }',
}
KEYS = [f"key{number}" for number in range(8)]


class Copies:
    """An instance with each of `routes`, all with caches at the same three servers, above a file of its own."""

    def __init__(self, stack: ExitStack, folder: Path, kind: str, routes: dict[str, str], plain: bool) -> None:
        self.stack = stack
        self.kind = kind
        self.servers = {name: stack.enter_context(START[kind]()) for name in "abc"}
        self.ports = {name: free_port() for name in routes}
        instances = "".join(self._instance(name, route) for name, route in routes.items())
        text = f"[proxy]\nworkers = 2\ndrain_timeout_s = 1\n{instances}"
        self.fleet = stack.enter_context(Fleet(text, folder, {"HYPER_PROXY_PLAIN": "1" if plain else ""}))
        self.clients = {name: self._client(port) for name, port in self.ports.items()}

    def _instance(self, name: str, route: str) -> str:
        a, b, c = (f'"{server.address} {alias}"' for alias, server in self.servers.items())
        pools = {"spare": b, "third": c}
        further = "".join(
            f'    [[instance.level.pool]]\n    name = "{pool}"\n    servers = [{servers}]\n'
            for pool, servers in pools.items() if f'"{pool}"' in route
        )  # fmt: skip
        return (
            f'[[instance]]\nname = "{name}"\nprotocol = "redis"\nlisten = ["127.0.0.1:{self.ports[name]}"]\n'
            f'  [[instance.level]]\n  storage = "{self.kind}"\n'
            f'  servers = [{a}{f", {b}" if "eject" in route else ""}]\n  route = {route}\n  {TIMES}\n{further}'
            + sqlite_level(f"{name}.db")
        )

    def _client(self, port: int) -> redis.Redis:
        return self.stack.enter_context(redis.Redis(port=port, decode_responses=True))

    def order(self, node: str, state: str) -> None:
        """To this server, in all instances."""
        for name in self.ports:
            assert self.fleet.post("/node", {"instance": name, "node": node, "state": state})[1]["ok"]

    def write(self, value: str) -> None:
        """To all keys of all instances; each has keys of its own name."""
        for name, client in self.clients.items():
            assert client.mset({f"{key}:{name}": value for key in KEYS})

    def read(self) -> dict[str, set[str]]:
        """All values, by instance; each read by many connections, so by both workers."""
        found: dict[str, set[str]] = {}
        for name, port in self.ports.items():
            for _ in range(6):
                with redis.Redis(port=port, decode_responses=True) as client:
                    found.setdefault(name, set()).update(client.mget([f"{key}:{name}" for key in KEYS]))
        return found

    def kept(self, alias: str, key: str) -> Any:
        """What a server has itself."""
        server: Running = self.servers[alias]
        if self.kind == "redis":
            with redis.Redis(port=server.port) as client:
                return client.get(key)
        answer = server.ask(f"get {key}\r\n".encode())
        return answer.split(b"\r\n")[1] if answer.startswith(b"VALUE") else None

    def keeps(self, value: str, aliases: str, names: Iterable[str]) -> bool:
        """Has one of these servers a copy of each key of these instances, after a read?"""
        self.read()
        names = [f"{key}:{name}" for name in names for key in KEYS]
        return all(value.encode() in [self.kept(alias, key) for alias in aliases] for key in names)

    def owed(self) -> int:
        """Marks that have still to be set."""
        rows = self.fleet.stats()["instances"].values()
        return sum(sum(row["marks_owed"].values()) for row in rows)


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[Callable[..., Copies]]:
    """Starts the servers and a fleet."""
    with ExitStack() as stack:
        yield lambda kind, routes, plain=False: Copies(stack, tmp_path, kind, routes, plain)


@pytest.mark.parametrize(("kind", "plain"), [("redis", False), ("memcache", False), ("redis", True)])
def test_what_was_written_while_a_server_was_out_is_read_when_it_is_back_and_when_it_is_out_again(
    copies: Callable[..., Copies], kind: str, plain: bool
) -> None:
    proxy = copies(kind, ROUTES, plain)
    proxy.write("one")
    wait_for(lambda: proxy.keeps("one", "ab", ROUTES), "all is kept by the first servers", 15)
    proxy.order("a", "drain")
    proxy.write("two")
    assert proxy.read() == {name: {"two"} for name in ROUTES}
    asked = ROUTES.keys() - {"all"}  # where one that is out makes all fail
    wait_for(lambda: proxy.keeps("two", "b", asked), "who is asked instead keeps what it misses", 15)
    proxy.order("a", "ready")
    wait_for(lambda: proxy.owed() == 0, "the first server knows of the writes")
    assert proxy.read() == {name: {"two"} for name in ROUTES}
    proxy.write("three")
    proxy.order("a", "drain")
    assert proxy.read() == {name: {"three"} for name in ROUTES}


LONGER = '  [[instance.level]]\n  storage = "redis"\n'


@pytest.mark.parametrize(
    "change",
    [
        (LONGER, "  [instance.write_back]\n  ttl = 400\n" + LONGER),
        (f" read_ms = {READ_MS}", f" read_ms = {READ_MS - 1}"),
    ],
)
def test_after_a_reload_what_one_server_lacks_is_owed_to_it_and_to_no_other(
    copies: Callable[..., Copies], change: tuple[str, str]
) -> None:
    proxy = copies("redis", {"all": ROUTES["all"], "any": ROUTES["any"]})
    proxy.write("one")
    wait_for(lambda: proxy.keeps("one", "a", ["all", "any"]), "all is kept by the first server", 15)
    proxy.servers["a"].freeze()  # it keeps its copies, and can't be told
    for number in range(3):
        proxy.write(f"two {number}")
    lacking = 2 * len(KEYS)
    assert proxy.owed() == lacking
    before = proxy.fleet.file.read_text()
    proxy.fleet.write(before.replace(*change))
    assert proxy.fleet.file.read_text() != before
    assert proxy.fleet.reload().accepted
    assert proxy.owed() <= lacking
    wait_for(lambda: proxy.owed() == lacking, "the round that was under way is owed as well")
    proxy.servers["a"].thaw()
    wait_for(lambda: proxy.owed() == 0, "it knows of the writes")
    assert proxy.read() == {"all": {"two 2"}, "any": {"two 2"}}
    assert not proxy.fleet.log_contains("marks_given_up")


def test_a_key_that_goes_elsewhere_by_the_clock_is_marked_at_both_places(copies: Callable[..., Copies]) -> None:
    times = "begins = 2000-01-01T00:00:00Z, hours = 1"
    inner = f'{{ migrate = "spare", of = "main", {times} }}'
    proxy = copies("redis", {"now": inner, "inner": f'{{ failover = [{inner}, "third"] }}'})
    proxy.write("value")
    marked = {(name, alias) for name in proxy.ports for alias in "abc" if proxy.kept(alias, f"key0:{name}") == MARK}
    assert marked == {("now", "a"), ("now", "b"), ("inner", "a"), ("inner", "b"), ("inner", "c")}
