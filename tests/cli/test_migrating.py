"""docs/migrating.md: what its blocks say holds, between real servers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pymemcache
import pytest

from hyper_proxy.cli.main import main
from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, nutcracker, redis_server

PAGE = (ROOT / "docs/migrating.md").read_text("utf-8")
BLOCK = re.compile(r"```(yaml|toml|json)\n(.*?)```", re.DOTALL)
(YAML, FROM_TWEMPROXY), (JSON, FROM_MCROUTER) = (
    [text for _, text in BLOCK.findall(section)] for section in PAGE.split("\n## ")[1:]
)
VECTORS = json.loads((ROOT / "tests/hashing/vectors/mcrouter.json").read_text())
OF_THREE = [row for row in VECTORS["ch3"] if row["buckets"] == 3 and re.fullmatch(r"[!-~]{1,250}", row["key"] or "")]
KEYS = [f"key{number}" for number in range(60)]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends whatever was started."""
    with ExitStack() as opened:
        yield opened


def _here(stack: ExitStack, text: str) -> tuple[str, dict[str, Running]]:
    """The text with a real server for each address of another machine; the servers by that address."""
    servers = {}
    for address in sorted(set(re.findall(r"10\.\d+\.\d+\.\d+:\d+", text))):
        servers[address] = stack.enter_context(memcached() if address.endswith("11211") else redis_server())
        text = re.sub(rf"{re.escape(address)}\b", servers[address].address, text)
    return text, servers


def _client(stack: ExitStack, port: int) -> pymemcache.Client:
    client = pymemcache.Client(("127.0.0.1", port), timeout=10, default_noreply=False)
    stack.callback(client.close)
    return client


def test_the_import_prints_what_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nutcracker.yml").write_text(YAML)
    monkeypatch.chdir(tmp_path)
    assert main(["import", "nutcracker", "nutcracker.yml"]) == 0
    assert capsys.readouterr().out == FROM_TWEMPROXY


def test_what_was_stored_through_twemproxy_is_found_here(stack: ExitStack, tmp_path: Path) -> None:
    ports = {"127.0.0.1:22121": free_port(), "127.0.0.1:22123": free_port()}
    here, _ = _here(stack, YAML)
    ours = here
    for listen, port in ports.items():
        ours = ours.replace(listen, f"127.0.0.1:{port}")
    theirs = stack.enter_context(nutcracker(here.replace("127.0.0.1:22121", "127.0.0.1:{port}"), tmp_path))
    for key in KEYS:
        assert theirs.ask(f"set {key} 0 0 1\r\nx\r\n".encode()) == b"STORED\r\n"
    (tmp_path / "ours.yml").write_text(ours)
    assert main(["import", "nutcracker", str(tmp_path / "ours.yml"), "-o", str(tmp_path / "ours.toml")]) == 0
    stack.enter_context(Fleet((tmp_path / "ours.toml").read_text(), tmp_path))
    assert _client(stack, ports["127.0.0.1:22121"]).get_many(KEYS) == dict.fromkeys(KEYS, b"x")


class Cache:
    """The configuration of mcrouter's user, running."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        text, self.servers = _here(stack, FROM_MCROUTER)
        port = free_port()
        stack.enter_context(Fleet(text.replace("127.0.0.1:5000", f"127.0.0.1:{port}"), folder))
        self.client = _client(stack, port)
        self.stack = stack
        self.pools = json.loads(JSON)["pools"]

    def server(self, pool: str, index: int) -> Running:
        """By its place in mcrouter's file."""
        return self.servers[self.pools[pool]["servers"][index]]

    def kept(self, pool: str, index: int, key: str) -> bytes | None:
        """What a server has."""
        value: bytes | None = _client(self.stack, self.server(pool, index).port).get(key)
        return value


@pytest.fixture
def cache(stack: ExitStack, tmp_path: Path) -> Cache:
    """With all its pools."""
    return Cache(stack, tmp_path)


def test_keys_are_where_mcrouter_has_them_in_both_copies(cache: Cache) -> None:
    assert len(OF_THREE) > 5
    for row in OF_THREE:
        cache.client.set(row["key"], "x")
        pool = ("cold",) if row["key"].startswith("user:") else ("a", "b")
        assert [cache.kept(name, row["index"], row["key"]) for name in pool] == [b"x"] * len(pool), row


def test_reads_go_on_from_the_second_copy_and_writes_want_both(cache: Cache) -> None:
    row = next(row for row in OF_THREE if not row["key"].startswith("user:"))
    cache.client.set(row["key"], "x")
    cache.server("a", row["index"]).kill()
    assert cache.client.get(row["key"]) == b"x"
    with pytest.raises(pymemcache.MemcacheServerError, match=f"node 'a{row['index'] + 1}"):
        cache.client.set(row["key"], "y")


def test_users_are_fetched_from_the_warm_pool(cache: Cache) -> None:
    row = next(row for row in OF_THREE if row["key"].startswith("user:"))
    _client(cache.stack, cache.server("warm", row["index"]).port).set(row["key"], "warm")
    assert cache.client.get(row["key"]) == b"warm" == cache.kept("cold", row["index"], row["key"])
