"""Storages of plug-ins that return nonsense: it costs the request, which is told whose fault it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.kit.ports import free_port
from tests.plugins.conftest import Start
from tests.plugins.texts import config, instance

ODD = """
from hyper_proxy import plugin


class Wild(list):
    def __iter__(self):
        raise RuntimeError("no list at all")


ITEMS = {b"text": plugin.Item("text", 0, None, 0), b"flags": plugin.Item(b"x", "1", None, 0),
         b"time": plugin.Item(b"x", 0, "soon", 0), b"version": plugin.Item(b"x", 0, None, "1"), b"bytes": b"x",
         b"inf": plugin.Item(b"x", 0, float("inf"), 0), b"-inf": plugin.Item(b"x", 0, float("-inf"), 0),
         b"nan": plugin.Item(b"x", 0, float("nan"), 0), b"far": plugin.Item(b"x", 0, 1e300, 0),
         b"farther": plugin.Item(b"x", 0, 10**400, 0), b"large version": plugin.Item(b"x", 0, None, 1 << 64),
         b"endless version": plugin.Item(b"x", 0, None, 10**5000)}
COUNTS = {"a": "many", "b": None, "c": -1, "d": True, "e": 1 << 60, "f": ""}
SCANS = {
    "a": (1 << 48, [b"k"]), "b": ("0", [b"k"]), "c": (0, ["k"]), "d": (7, [b"k"]), "e": None, "f": (0, Wild([b"k"]))}


@plugin.storage("odd", files=True)
class Odd(plugin.KeyValue):
    def __init__(self, server, level):
        self.name = server.file[-1]

    def get_many(self, keys):
        items = [ITEMS.get(key) for key in keys]
        return Wild(items) if b"wild" in keys else items

    def update(self, keys, change):
        if keys[0] == b"nothing":
            return None
        if keys[0] == b"unasked":
            return 1, (0,)
        edits, result = change(self.get_many(keys))
        return {b"other": (5, (0,)), b"versions": (result, None),
                b"wild versions": (result, Wild([0])), b"number": (result, (1 << 64,))}.get(keys[0], (result, (0,)))

    def put_many(self, entries):
        return "nonsense"

    def count(self):
        return COUNTS[self.name]

    def scan(self, cursor, limit):
        return SCANS[self.name]

    def clear(self):
        return 5
"""

ODD_ITEMS = [
    "text", "flags", "time", "version", "bytes", "inf", "-inf", "nan", "far", "farther", "large version",
    "endless version", "wild",
]  # fmt: skip


def test_what_is_no_answer_is_a_fault_of_the_plugin(start: Start, folder: Path) -> None:
    (folder / "odd.py").write_text(ODD)
    ports = {name: free_port() for name in "abcdef"}
    more = "timeout = { read_ms = 5000 }"
    instances = (instance("redis", port, "odd", [name], more) for name, port in ports.items())
    fleet = start(config(["odd.py"], *instances))
    pids = fleet.worker_pids()
    read = r"plug-in 'odd.py' failed in (get_many|update|expire_many)"
    with redis.Redis(port=ports["a"], single_connection_client=True) as client:
        number = client.client_id()
        for key in ODD_ITEMS:
            for ask in (client.get, client.ttl, client.incr):
                with pytest.raises(redis.ResponseError, match=read):
                    ask(key)
        for key in ("nothing", "unasked", "other", "versions", "number", "wild versions"):
            with pytest.raises(redis.ResponseError, match=r"plug-in 'odd.py' failed in update"):
                client.incr(key)
        assert client.incr("well") == 1
        assert client.set("well", "x")
        assert client.client_id() == number, "the same connection"
    for port in ports.values():
        with redis.Redis(port=port, socket_timeout=20) as client:
            with pytest.raises(redis.ResponseError, match=r"plug-in 'odd.py' failed in count"):
                client.dbsize()
            with pytest.raises(redis.ResponseError, match=r"plug-in 'odd.py' failed in scan"):
                list(client.scan_iter())
    assert fleet.worker_pids() == pids
    fleet.wait_log("what Odd.get_many has returned is wrong: Item(value='text'")
