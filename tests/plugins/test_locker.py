"""A protocol whose plug-in keeps something for each client: what it knows of one, no other sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyper_proxy.common.keyname import digest
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_faults import line_of
from tests.plugins.test_toy import explain
from tests.plugins.texts import config, instance

LOGGED = "\n[log]\naccess_sample = 1.0\n"

PICKY = """
from hyper_proxy import plugin


@plugin.protocol("picky")
class Picky(plugin.Protocol):
    seen = 0

    def opened(self, client):
        Picky.seen += 1
        if Picky.seen == 1:
            raise plugin.ClientError(f"not you, {client.address.partition(':')[0]}, and not {client.instance.protocol}")
        if Picky.seen == 2:
            return {}[client.address]
        return 7 if Picky.seen == 3 else self

    def unserialize(self, buffer, start):
        end = buffer.find(b"\\n", start)
        if buffer[start:start + 1] == b"?":
            return plugin.Partly(len(buffer) + 1)
        return None if end < 0 else (plugin.Request("any"), end + 1)

    def split(self, request):
        return []

    def map(self, storage, part):
        return None

    def reduce(self, request, results):
        return b"welcome"

    def serialize(self, reply):
        return reply + b"\\n"

    def refuse(self, error):
        return f"! {error.kind}: {error}\\n".encode()
"""


NO = """
from hyper_proxy import plugin


@plugin.protocol("no")
class No(plugin.Protocol):
    def opened(self, client):
        return self  # opened

    def encode(self, words):
        return 7 if words[1] == b"bytes" else words[1]

    def unserialize(self, buffer, start):
        if buffer == b"tuple":
            return 1, 2, 3
        return 7 if buffer == b"request" else plugin.Request("any"), len(buffer)

    def split(self, request):
        return None

    def map(self, storage, part):
        return None

    def reduce(self, request, results):
        return b""

    def serialize(self, reply):
        return reply

    def refuse(self, error):
        return b"!"
"""


def test_each_client_has_a_name_of_its_own(start: Start) -> None:
    port = free_port()
    start(config(["locker.py"], instance("locker", port)))
    with Lines(port) as ann, Lines(port) as bob, Lines(port) as nobody:
        assert ann.ask(b"name ann\n") == [b"ok"]
        assert bob.ask(b"name bob\n") == [b"ok"]
        assert ann.ask(b"put k 3\nann", lines=2) == [b"go on", b"ok"]
        assert bob.ask(b"put k 3\nbob", lines=2) == [b"go on", b"ok"]
        assert ann.ask(b"get k\n", lines=2) == [b"3", b"ann"]
        assert bob.ask(b"get k\n", lines=2) == [b"3", b"bob"]
        assert nobody.ask(b"get k\nname ann\nget k\n", lines=4) == [
            b"!client who are you? Say: name NAME", b"ok", b"3", b"ann",
        ]  # fmt: skip


def test_no_name_begins_with_another_one(start: Start) -> None:
    port = free_port()
    start(config(["locker.py"], instance("locker", port)))
    with Lines(port) as ann, Lines(port) as bob:
        assert ann.ask(b"name a/b\nput c 6\nsecret", lines=3) == [
            b"!client a name is without /", b"go on", b"!client who are you? Say: name NAME",
        ]  # fmt: skip
        assert bob.ask(b"name a\nget b/c\n", lines=2) == [b"ok", b"-"]
        assert bob.ask(b"put k " + b"9" * 5000 + b"\n") == [b"!client where does the value end? It is: put KEY SIZE"]


def test_what_is_said_meanwhile_comes_behind_earlier_answers_and_once(start: Start) -> None:
    port = free_port()
    start(config(["locker.py"], instance("locker", port)))
    with Lines(port) as client:
        answers = client.ask(b"name ann\nget a\nput a 5\n", lines=3)
        assert answers == [b"ok", b"-", b"go on"]
        for byte in b"hello":
            client.send(bytes([byte]))
        assert client.lines(1) == [b"ok"]
        data = b"get a\nput b 2\nxyget b\nget c\n"
        wanted = [b"5", b"hello", b"go on", b"ok", b"2", b"xy", b"-"]
        assert client.ask(data, lines=7) == wanted
        for byte in data:
            client.send(bytes([byte]))
        assert client.lines(7) == wanted


def test_what_is_taken_in_pieces_is_held_against_the_limits(start: Start) -> None:
    port = free_port()
    limits = 'max_request_bytes = "64KB"\n  max_value_bytes = 1000'
    fleet = start(config(["locker.py"], instance("locker", port, limits=limits)) + LOGGED)
    with Lines(port) as client:
        client.send(b"name ann\nput a 1001\n" + b"x" * 1001 + b"put a 100000\n" + b"x" * 70_000)
        assert client.read_to_end().splitlines() == [
            b"ok",
            b"go on",
            b"!client a value is longer than limits.max_value_bytes (1000)",
            b"go on",
            b"!client the request is longer than limits.max_request_bytes (65536)",
        ]
    assert fleet.stats()["instances"][f"locker{port}"]["errors"] == {"client": 2}


def test_the_access_log_knows_all_bytes_of_a_request_and_the_word_for_an_error(start: Start) -> None:
    port = free_port()
    fleet = start(config(["locker.py"], instance("locker", port)) + LOGGED)
    value = b"x" * 300_000
    with Lines(port) as client:
        assert client.ask(b"get k\n") == [b"!client who are you? Say: name NAME"]
        assert client.ask(b"name ann\n") == [b"ok"]
        assert client.ask(b"put k 300000\n") == [b"go on"]
        client.send(value[:1000])
        assert client.ask(value[1000:]) == [b"ok"]
    records = logged(fleet, 3)
    assert "command=get" in records[0] and "keys=1" in records[0] and "error=nameless" in records[0]
    assert "command=put" in records[2] and 'error=""' in records[2]
    assert f"bytes_in={len('put k 300000') + 1 + len(value)} bytes_out=3 " in records[2]


def test_the_bytes_of_a_request_are_counted_once_though_they_come_with_others(start: Start) -> None:
    port = free_port()
    fleet = start(config(["locker.py"], instance("locker", port, limits='max_request_bytes = "64KB"')) + LOGGED)
    with Lines(port) as client:
        assert client.ask(b"name ann\nput k 10\n12345", lines=2) == [b"ok", b"go on"]
        logged(fleet, 1)
        assert client.ask(b"67890get k\n", lines=3) == [b"ok", b"10", b"1234567890"]
        logged(fleet, 2)
        client.send(b"put k 99999\n" + b"x" * (65_537 - len("put k 99999\n")))
        assert b"max_request_bytes" in client.read_to_end()
    records = logged(fleet, 3)
    assert len(records) == 3
    assert "command=name" in records[0] and f"bytes_in={len('name ann') + 1} " in records[0]
    assert "command=put" in records[1] and f"bytes_in={len('put k 10') + 1 + 10 + len('get k') + 1} " in records[1]
    assert "requests=1" in records[2] and "error=max_request_bytes" in records[2]
    row = fleet.stats()["instances"][f"locker{port}"]["requests"]
    assert row == {"read": 1, "idempotent": 1, "write": 0, "admin": 2}


def logged(fleet: Fleet, count: int) -> list[str]:
    """The records, as soon as there are so many."""

    def found() -> list[str]:
        return [line for line in fleet.read_log().splitlines() if "request.sampled" in line]

    wait_for(lambda: len(found()) >= count, f"{count} records")
    return found()


def test_who_is_not_taken_reads_why_and_is_let_go(start: Start, folder: Path) -> None:
    (folder / "picky.py").write_text(PICKY)
    port = free_port()
    fleet = start(config(["picky.py"], instance("picky", port)))
    said = []
    for _ in range(3):
        with Lines(port) as client:
            said.append(client.read_to_end())
    assert said == [
        b"! client: not you, 127.0.0.1, and not picky\n",
        *[b"! plugin: plug-in 'picky.py' failed in opened\n"] * 2,
    ]
    with Lines(port) as client:
        assert client.ask(b"hello\n") == [b"welcome"]
        client.send(b"?\n")
        assert client.read_to_end() == b"! plugin: plug-in 'picky.py' failed in unserialize\n"
    fleet.wait_log("Partly.end, ")
    assert f"at={folder / 'picky.py'}:{line_of(PICKY, 'return {}')}" in fleet.read_log()
    assert "a Protocol is wanted, not 7" in fleet.read_log()
    assert fleet.stats()["instances"][f"picky{port}"]["errors"] == {"client": 1, "plugin": 3}


def test_explain_asks_an_object_of_its_own(start: Start) -> None:
    port = free_port()
    fleet = start(config(["locker.py"], instance("locker", port)))
    assert "who are you?" in explain(fleet.file, f"locker{port}", "get", "k", status=2)
    said = explain(fleet.file, f"locker{port}", "put", "k", "3", status=2)
    assert "has no `encode`, which makes a request of words; without one it is b'put k 3\\n', which" in said
    assert "plug-in 'locker.py' makes 1 part of it" in explain(fleet.file, f"locker{port}", "name", "ann")


@pytest.mark.parametrize(
    ("words", "says", "function"),
    [
        (["no", "protocol"], "opened: a Protocol is wanted, not None", "def opened"),
        (["no", "bytes"], "encode: bytes is wanted, not 7", "def encode"),
        (["no", "tuple"],
         "unserialize: a Request and the index behind it, a size, a Partly, or None is wanted, not (1, 2, 3)",
         "def unserialize"),
        (["no", "request"], "unserialize: 7, in front of the index, is no Request", "def unserialize"),
        (["no", "parts"], "split: a list is wanted, not None", "def split"),
    ],
)  # fmt: skip
def test_explain_says_which_function_returns_what_it_must_not(
    tmp_path: Path, words: list[str], says: str, function: str
) -> None:
    (tmp_path / "no.py").write_text(NO)
    (tmp_path / "hp.toml").write_text(config(["no.py"], instance("no", 6380)))
    if words[1] == "protocol":
        (tmp_path / "no.py").write_text(NO.replace("return self  # opened", "return None"))
    said = explain(tmp_path / "hp.toml", "no6380", *words, status=2)
    assert f"plug-in 'no.py' failed in {says}" in said
    assert f"({tmp_path / 'no.py'}:{line_of(NO, function)})" in said


def test_what_is_read_is_known_by_its_size(start: Start) -> None:
    port = free_port()
    fleet = start(config(["locker.py"], instance("locker", port)))
    with Lines(port) as client:
        assert client.ask(b"name ann\nput big 70000\n" + b"x" * 70_000, lines=3) == [b"ok", b"go on", b"ok"]
        for _ in range(300):
            assert client.ask(b"get big\n", lines=2)[0] == b"70000"
    row = fleet.stats()["instances"][f"locker{port}"]
    assert row["big_keys"] == [[digest(b"ann/big"), 70_000]]
    assert row["hot_keys"][0][0] == digest(b"ann/big")
