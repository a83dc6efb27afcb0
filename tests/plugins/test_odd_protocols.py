"""Protocols of plug-ins whose requests, lists and errors are odd: it costs an answer, and is told as theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_faults import line_of
from tests.plugins.texts import config, instance

ODD = """
import time
import gevent
from hyper_proxy import plugin


class Data(bytes):
    pass


class Wild(list):
    def __iter__(self):
        raise RuntimeError("no list at all")


def fails():
    yield 1
    raise RuntimeError("no more sizes")


def leaves():
    raise SystemExit(3)  # leaves


FIELDS = {
    b"command bytes": {"command": b"get"},
    b"command none": {"command": None},
    b"command long": {"command": "x" * 2_000_000},
    b"klass real": {"klass": 1.0},
    b"keys number": {"keys": 5},
    b"keys text": {"keys": "a"},
    b"keys list": {"keys": [b"a", b"b"]},
    b"data": {"keys": [Data(b"a")], "values": (Data(b"b"),)},
    b"keys generator": {"keys": (key for key in (b"a", b"b"))},
    b"keys wild": {"keys": Wild([b"a"])},
}
SIZES = {b"number": 5, b"generator": fails(), b"text": "ab", b"huge": [10**30], b"wild": Wild([1]), b"real": [1.5]}


@plugin.protocol("odd")
class Odd(plugin.Protocol):
    def unserialize(self, buffer, start):
        end = buffer.find(b"\\n", start)
        if end < 0:
            return None
        line = buffer[start:end]
        if line == b"begins" and start == 0:
            return plugin.Partly(len(line), Data(b"go on\\n"))
        if line == b"wild pair":
            return Wild([plugin.Request("get"), end + 1])
        fields = {"command": "get", "keys": (line,), "content": line, **FIELDS.get(line, {})}
        return plugin.Request(**fields), end + 1

    def split(self, request):
        return Wild([1, 2]) if request.content == b"wild split" else [request.content]

    def map(self, storage, part):
        if part == b"spawn":
            gevent.spawn(leaves).join()
        return part

    def reduce(self, request, results):
        return results[0]

    def serialize(self, reply):
        return Data(reply + b"\\n")

    def sizes(self, request, reply):
        return SIZES.get(request.content)

    def refuse(self, error):
        return f"! {error.kind}: {error}\\n".encode()
"""

WORDS = """
from hyper_proxy import plugin


class Word(plugin.ClientError):
    word = b"no_such_key"


class Kind(plugin.ClientError):
    kind = b"mine"


class Tuple(plugin.ClientError):
    kind = ("a",)


class Property(plugin.ClientError):
    @property
    def kind(self):
        raise ValueError("no kind")


class Dumb(plugin.ClientError):
    def __str__(self):
        raise ValueError("no words")


class Bare(plugin.BackendError):
    def __init__(self):
        pass


ERRORS = {b"word": Word("x"), b"kind": Kind("x"), b"tuple": Tuple("x"), b"property": Property("x"),
          b"dumb": Dumb("x"), b"no node": Bare(), b"node": plugin.BackendError("one", None, "io", "x")}


def complain(key, other):
    raise ERRORS.get(key, other)  # raised


@plugin.protocol("words")
class Words(plugin.Protocol):
    def unserialize(self, buffer, start):
        end = buffer.find(b"\\n", start)
        return None if end < 0 else (plugin.Request("get", content=buffer[start:end]), end + 1)

    def split(self, request):
        return [request.content]

    def map(self, storage, part):
        return part if part == b"well" else complain(part, None)

    def reduce(self, request, results):
        return results[0]

    def serialize(self, reply):
        return reply + b"\\n"

    def refuse(self, error):
        return f"! {error.kind}: {error}\\n".encode()


@plugin.storage("wordless", files=True)
class Wordless(plugin.ReadOnly):
    def __init__(self, server, level):
        pass

    def get_many(self, keys):
        complain(keys[0], plugin.ClientError("be polite"))

    def count(self):
        return 0

    def scan(self, cursor, limit):
        return 0, []
"""


def odd(start: Start, folder: Path, more: str = "") -> tuple[Fleet, int]:
    (folder / "odd.py").write_text(ODD)
    port = free_port()
    return start(config(["odd.py"], instance("odd", port)) + more), port


def test_a_request_that_is_none_is_a_fault_of_unserialize(start: Start, folder: Path) -> None:
    fleet, port = odd(start, folder)
    pids = fleet.worker_pids()
    wrong = [b"command bytes", b"command none", b"klass real", b"keys number", b"keys text", b"keys wild", b"wild pair"]
    for line in wrong:
        with Lines(port) as client:
            client.send(b"well\n" + line + b"\nnobody\n")
            assert client.read_to_end() == b"well\n! plugin: plug-in 'odd.py' failed in unserialize\n", line
    with Lines(port) as client:
        lines = [b"keys list", b"keys generator", b"data"]
        assert client.ask(b"\n".join([*lines, b""]), len(lines)) == lines
    assert fleet.worker_pids() == pids
    fleet.wait_log("command of a Request is text, not b'get'")
    assert "worker.fault" not in fleet.read_log()


def test_answers_may_be_of_a_class_made_of_bytes(start: Start, folder: Path) -> None:
    _, port = odd(start, folder)
    with Lines(port) as client:
        answers = client.ask(b"begins\nwell\nwild split\n" + b"data\n" * 1000, lines=1004)
        assert answers[:4] == [b"go on", b"", b"well", b"! plugin: plug-in 'odd.py' failed in split"]
        assert answers[4:] == [b"data"] * 1000


def test_the_name_of_a_request_is_cut_for_the_records(start: Start, folder: Path) -> None:
    fleet, port = odd(start, folder, "\n[log]\naccess_sample = 1.0\n")
    with Lines(port) as client:
        assert client.ask(b"command long\n") == [b"command long"]
    fleet.wait_log(f"command={'x' * 64} ")


def test_a_list_that_cannot_be_read_is_a_fault_of_split(start: Start, folder: Path) -> None:
    fleet, port = odd(start, folder)
    with Lines(port) as client:
        answers = client.ask(b"wild split\nwell\n", lines=2)
        assert answers == [b"! plugin: plug-in 'odd.py' failed in split", b"well"]
    fleet.wait_log(f'at={folder / "odd.py"}:{line_of(ODD, "no list at all")} error="RuntimeError: no list')


@pytest.mark.parametrize("word", ["number", "generator", "text", "huge", "wild", "real"])
def test_sizes_that_are_none_cost_no_client_anything(start: Start, folder: Path, word: str) -> None:
    fleet, port = odd(start, folder)
    with Lines(port) as client:
        lines = 1000
        assert client.ask(f"{word}\n".encode() * lines, lines) == [word.encode()] * lines
        assert client.ask(b"well\n") == [b"well"]
    fleet.wait_log("plugin.failed plugin=odd.py function=sizes")
    assert "worker.fault" not in fleet.read_log()
    assert json.loads(fleet.http("GET", "/hotkeys")[1])


def test_a_greenlet_that_a_plugin_starts_does_not_end_the_worker(start: Start, folder: Path) -> None:
    fleet, port = odd(start, folder)
    pids = fleet.worker_pids()
    with Lines(port) as client:
        assert client.ask(b"spawn\nwell\n", lines=2) == [b"spawn", b"well"]
    fleet.wait_log(f'worker.fault error="SystemExit: 3" at={folder / "odd.py"}:{line_of(ODD, "# leaves")}')
    assert fleet.worker_pids() == pids


@pytest.mark.parametrize("word", ["word", "kind", "tuple", "property", "node", "no node"])
def test_an_error_without_words_is_a_fault_of_who_raises_it(start: Start, folder: Path, word: str) -> None:
    (folder / "words.py").write_text(WORDS)
    port, redis_port = free_port(), free_port()
    more = "\n[log]\naccess_sample = 1.0\n"
    instances = instance("words", port), instance("redis", redis_port, "wordless", ["x"])
    fleet = start(config(["words.py"], *instances) + more)
    with Lines(port) as client:
        answers = client.ask(f"{word}\nwell\n".encode(), lines=2)
        assert answers == [b"! plugin: plug-in 'words.py' failed in map", b"well"]
    with redis.Redis(port=redis_port) as reader:
        for name in (word, "dumb"):
            with pytest.raises(redis.ResponseError, match=r"plug-in 'words.py' failed in get_many"):
                reader.get(name)
        with pytest.raises(redis.ResponseError, match="be polite"):
            reader.get("well")
    at = f"{folder / 'words.py'}:{line_of(WORDS, '# raised')}"
    fleet.wait_log(f"function=get_many instance=redis{redis_port} at={at}")
    assert "worker.fault" not in fleet.read_log()
