"""Retrievals of many keys: every key goes to its shard once per mention, and comes back at its place or not at all."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.express import Giver
from hyper_proxy.config.load import load_text
from hyper_proxy.front import Front, Snapshot
from hyper_proxy.hashing import build
from hyper_proxy.stats.slowlog import Journal
from hyper_proxy.stats.watch import Watch
from hyper_proxy.storage.memcache import MemcacheStorage
from tests.kit.plain import both

pair = both(
    "hyper_proxy.protocol.memcache.fanout",
    "hyper_proxy.protocol.memcache.session",
    "hyper_proxy.hashing.distributions.divmod",
)
Modules = tuple[ModuleType, ModuleType, ModuleType]

CONFIG = """
[[instance]]
name = "mc"
protocol = "memcache"
listen = ["127.0.0.1:21311"]
on_partial = "{on_partial}"
[[instance.level]]
storage = "memcache"
hash = "fnv1a_64"
distribution = "modula"
servers = [{servers}]
"""


class Nobody(Giver):
    """A client that is not connected."""


class Proxy:
    """A session of one form of the code, and the parts that it makes of a request; nobody is connected."""

    def __init__(self, modules: Modules, shards: int = 3, on_partial: str = "error") -> None:
        servers = ", ".join(f'"127.0.0.1:{2000 + shard}:1 n{shard}"' for shard in range(shards))
        instance = load_text(CONFIG.format(servers=servers, on_partial=on_partial), "x.toml").instances[0]
        level = instance.levels[0]
        self.placement = build(level.hash, level.distribution, level.hash_tag, level.servers)
        snapshot = Snapshot(instance, MemcacheStorage("mc", level), self.placement)
        front = Front(modules[1].MemcacheSession, snapshot, 0, Watch("mc", Journal(0)))
        self.session = modules[1].MemcacheSession(front, Nobody())
        self.kind = modules[0].MultiGet

    def cut(self, line: bytes, short: bool = False, rewrite: bool = False, most: int = 10**6) -> tuple[Any, bytes]:
        """The reducer, and the error, of a line; its first word (and a number behind it) is repeated in every part."""
        head = len(line) - len(line.lstrip(b" "))
        words = line.split()
        first = line.index(keys_of(line)[0], head + len(words[0]) + 4 * (len(keys_of(line)) < len(words) - 1))
        reducer = self.kind()
        return reducer, reducer.cut(line, head, first, len(line), self.placement, 250, most, short, rewrite)

    def shard(self, key: bytes) -> int:
        return self.placement.locate(key, 0, len(key))


def item(key: bytes, store: dict[bytes, bytes]) -> bytes:
    return b"VALUE %b 7 %d\r\n%b\r\n" % (key, len(store[key]), store[key]) if key in store else b""


def answers(reducer: Any, line: bytes, store: dict[bytes, bytes]) -> list[bytes]:
    """What the servers would say to the parts."""
    requests = [bytes(part.request or line) for part in reducer.parts]
    return [b"".join(item(key, store) for key in keys_of(request)) + b"END\r\n" for request in requests]


def keys_of(request: bytes) -> list[bytes]:
    words = request.split()
    return words[2:] if words[0] in (b"gat", b"gats") else words[1:]


KEYS = st.binary(min_size=1, max_size=12).map(lambda raw: raw.translate(None, b" \n\0\r\t\v\f") or b"k")


@pair
@settings(deadline=None)
@given(
    keys=st.lists(KEYS, min_size=1, max_size=30),
    held=st.data(),
    shards=st.integers(1, 5),
    space=st.sampled_from([b" ", b"  "]),
)
def test_split_and_merge_is_the_answer_of_one_server(
    module: Modules, keys: list[bytes], held: st.DataObject, shards: int, space: bytes
) -> None:
    proxy = Proxy(module, shards)
    line = b"get " + space.join(keys)
    store = {key: b"value of " + key for key in keys if held.draw(st.booleans())}
    reducer, error = proxy.cut(line)
    assert error == b""
    for part in reducer.parts:
        if len(reducer.parts) > 1:
            mine = [key for key in keys if proxy.shard(key) == part.shard]
            assert bytes(part.request) == b"get " + b" ".join(mine) + b"\r\n"
    whole = b"".join(item(key, store) for key in keys) + b"END\r\n"
    assert reducer.reduce(answers(reducer, line, store), proxy.session) == whole


@pair
def test_lines_of_other_commands_than_get_stay_short(module: Modules) -> None:
    proxy = Proxy(module)
    keys = [b"key%04d" % (number % 700) for number in range(3000)]
    line = b"gat 10 " + b" ".join(keys)
    reducer, error = proxy.cut(line, short=True)
    assert error == b""
    assert max(len(part.request) for part in reducer.parts) < 2000
    assert all(part.request.startswith(b"gat 10 key") for part in reducer.parts)
    store = {key: key for key in keys[::3]}
    whole = b"".join(item(key, store) for key in keys) + b"END\r\n"
    assert reducer.reduce(answers(reducer, line, store), proxy.session) == whole


@pair
def test_a_single_part_travels_as_it_came_unless_its_line_must_be_written_anew(module: Modules) -> None:
    proxy = Proxy(module, shards=1)
    assert proxy.cut(b"get a b")[0].parts[0].request is None
    reducer, _ = proxy.cut(b"  gets   a    b", rewrite=True)
    assert bytes(reducer.parts[0].request) == b"gets a b\r\n"


@pair
def test_what_cannot_be_asked(module: Modules) -> None:
    proxy = Proxy(module)
    assert proxy.cut(b"get a " + b"k" * 251)[1] == b"CLIENT_ERROR bad command line format\r\n"
    assert proxy.cut(b"get a b c", most=2)[1] == b"CLIENT_ERROR too many keys\r\n"
    assert proxy.cut(b"get a b", most=2)[1] == b""


def wrong_answers(good: bytes) -> list[bytes]:
    """Well-formed replies that do not fit the question for the keys in `good`."""
    items = [part + b"\r\n" for part in good[: -len(b"END\r\n")].split(b"\r\n\r\n") if part]
    return [
        b"VALUE other 7 1\r\nx\r\nEND\r\n",
        good[:-5] + b"VALUE other 7 1\r\nx\r\nEND\r\n",
        b"".join(reversed(items)) + b"END\r\n",
        good[:-5] + good,
        b"STORED\r\n",
        b"VA 1\r\nx\r\n",
        b"HD\r\n",
    ]


@pair
@pytest.mark.parametrize("on_partial", ["error", "nil", "element"])
def test_a_wrong_value_never_comes_through(module: Modules, on_partial: str) -> None:
    proxy = Proxy(module, 3, on_partial)
    keys = [b"key%d" % number for number in range(40)]
    line = b"get " + b" ".join(keys)
    store = {key: b"value\r\n\r\nof " + key for key in keys}
    reducer, _ = proxy.cut(line)
    good = answers(reducer, line, store)
    for index, part in enumerate(reducer.parts):
        without = [key for key in keys if proxy.shard(key) != part.shard]
        kept = b"".join(item(key, store) for key in without) + b"END\r\n"
        flat = b"".join(item(key, {key: b"1"}) for key in keys_of(bytes(part.request or line))) + b"END\r\n"
        for wrong in [*wrong_answers(good[index]), b"SERVER_ERROR out\r\n", BackendError("mc", "n", "timeout", "hung"),
                      flat[:-5] + b"SERVER_ERROR timeout\r\n"]:  # fmt: skip
            fresh, _ = proxy.cut(line)
            out = fresh.reduce([wrong if at == index else reply for at, reply in enumerate(good)], proxy.session)
            if on_partial == "error":
                assert out.startswith(b"SERVER_ERROR ") and out.count(b"\r\n") == 1, wrong
            else:
                assert out == kept, wrong


@pair
def test_many_random_merges(module: Modules) -> None:
    """Keys of one letter, often repeated, next to keys that begin alike."""
    dice = random.Random(7)
    proxy = Proxy(module, 4)
    for _ in range(300):
        keys = dice.choices([b"a", b"aa", b"aaa", b"b", b"ab", b"c_d"], k=dice.randint(1, 40))
        store = {key: dice.randbytes(dice.randint(0, 30)) for key in keys if dice.random() < 0.6}
        line = b"gets " + b" ".join(keys)
        reducer, _ = proxy.cut(line)
        whole = b"".join(item(key, store) for key in keys) + b"END\r\n"
        assert reducer.reduce(answers(reducer, line, store), proxy.session) == whole
