"""Faults of plug-ins that serve: the log names the line, also where none was running, and what was asked."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from hyper_proxy.common.keyname import digest
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_faults import line_of
from tests.plugins.texts import ECHO, config, instance

WAITING = """
import functools
import select
import socket
import subprocess
import time
from hyper_proxy import plugin

PAIRS = []


def traced(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call


@plugin.storage("waiting", files=True)
class Waiting(plugin.KeyValue):
    def __init__(self, server, level):
        if server.file.endswith("refused"):
            raise {}[server.file]
        self.pair = socket.socketpair()

    def _wait(self, key):
        if key == b"sleeps":
            time.sleep(30)
        PAIRS.append(socket.socketpair())
        if key == b"hears":
            PAIRS[-1][0].recv(1)
        if key == b"selects":
            select.select([PAIRS[-1][0]], [], [])
        if key == b"runs":
            subprocess.run(["sleep", "30"])
        if key == b"shares":
            self.pair[0].recv(1)
        if key == b"misses":
            open("/nowhere/at/all")

    @traced
    def get_many(self, keys):
        self._wait(keys[0])
        return [b"no item" if key == b"odd" else None for key in keys if key != b"left out"]

    def update(self, keys, change):
        return None

    def put_many(self, entries):
        self._wait(entries[0][0])

    def count(self):
        return -1

    def scan(self, cursor, limit):
        raise KeyError(cursor)

    def clear(self):
        pass
"""


def failed(log: str) -> list[str]:
    """The lines of faults, from `function=` on."""
    return [row[row.index("function=") :] for row in log.splitlines() if "plugin.failed" in row]


@pytest.mark.parametrize("word", ["sleeps", "hears", "selects", "runs"])
def test_a_storage_that_waits_is_told_with_the_line_at_which_it_does(start: Start, folder: Path, word: str) -> None:
    file = folder / "waiting.py"
    file.write_text(WAITING)
    port = free_port()
    fleet = start(config(["waiting.py"], instance("redis", port, "waiting", ["x"], "timeout = { read_ms = 200 }")))
    with redis.Redis(port=port) as client:
        for ask in (lambda: client.get(word), lambda: client.get(word)):  # in a thread with a loop of its own, too
            with pytest.raises(redis.ResponseError, match=r"get_many has not ended within 0\.2 s"):
                ask()
    wait_for(lambda: len(failed(fleet.read_log())) == 2, "both are in the log")
    line = {"sleeps": "time.sleep(30)", "hears": ".recv(1)", "selects": "select.select",
            "runs": "subprocess.run"}[word]  # fmt: skip
    assert [row.partition(" slot=")[0] for row in failed(fleet.read_log())] == [
        f"function=get_many instance=redis{port} at={file}:{line_of(WAITING, line)} "
        f'error="it has not ended within 0.2 s" asked="key {digest(word.encode())}"'
    ] * 2


def test_a_wrong_answer_of_a_storage_is_told_with_its_function_and_the_keys(start: Start, folder: Path) -> None:
    file = folder / "waiting.py"
    file.write_text(WAITING)
    port = free_port()
    text = config(["waiting.py"], instance("redis", port, "waiting", ["x"]))
    fleet = start(text)
    fleet.write(f'{text}\n[admin]\nlisten = "127.0.0.1:{fleet.admin_port}"\nshow_keys = true\n')
    assert fleet.reload().accepted
    with redis.Redis(port=port) as client:
        for ask, kind in (
            (lambda: client.mget("a", "odd", "c", "d", "e"), "failed in get_many"),
            (lambda: client.mget("a", "left out"), "failed in get_many"),
            (lambda: client.incr("n"), "failed in update"),
            (client.dbsize, "failed in count"), (lambda: client.scan(0, count=7), "failed in scan"),
            (lambda: client.get("misses"), "get_many: .* No such file"),
        ):  # fmt: skip
            with pytest.raises(redis.ResponseError, match=kind):
                ask()
    fleet.wait_log("FileNotFoundError")
    rows = failed(fleet.read_log())
    assert "is wrong: b'no item' is no Item" in rows[0]
    assert "is wrong: a list of 1 for 2 keys, where each has its Item or None" in rows[1]
    for row, function, line, asked in zip(
        rows, ("get_many", "get_many", "update", "count", "scan", "get_many"),
        ("    @traced", "    @traced", "def update", "def count", "raise KeyError(cursor)", 'open("/nowhere'),
        ('asked="keys b\'a\', b\'odd\', b\'c\' and 2 more"', "asked=\"keys b'a', b'left out'\"",
         "asked=\"key b'n'\"", "", 'asked="cursor 0, limit 7"',
         "asked=\"key b'misses'\""), strict=True,
    ):  # fmt: skip
        assert row.startswith(f"function={function} instance=redis{port} at={file}:{line_of(WAITING, line)} "), row
        assert asked in row
        assert ("asked" in row) == bool(asked)


def test_a_socket_of_another_thread_is_told_how_it_would_be_right(start: Start, folder: Path) -> None:
    (folder / "waiting.py").write_text(WAITING)
    port = free_port()
    fleet = start(config(["waiting.py"], instance("redis", port, "waiting", ["x"])))
    with redis.Redis(port=port) as client, pytest.raises(redis.ResponseError, match="failed in get_many"):
        client.get("shares")
    fleet.wait_log("; a socket serves in the thread alone in which it was made: keep it in a threading.local()")
    (row,) = failed(fleet.read_log())
    assert f"at={folder / 'waiting.py'}:{line_of(WAITING, 'self.pair[0].recv')} " in row


def test_a_storage_that_cannot_be_made_is_told_with_its_line(start: Start, folder: Path) -> None:
    file = folder / "waiting.py"
    file.write_text(WAITING)
    text = config(["waiting.py"], instance("redis", free_port(), "waiting", ["x"]))
    fleet = start(text)
    fleet.write(text.replace('["x"]', '["x", "refused"]'))
    verdict = fleet.reload()
    assert not verdict.accepted
    where = f"{file}:{line_of(WAITING, 'raise {}[server.file]')}"
    assert f"plug-in 'waiting.py' can't serve it: KeyError: '{folder / 'refused'}' ({where})" in str(verdict.body)


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        ("99", "the index behind the Request, 99, is not from 5 to 11: return None, or a size, while"),
        ("start", "the index behind the Request, 4, is not from 5 to 11: it is counted from the beginning"),
        ("'5'", "'5', behind the Request, is no index"),
    ],
)
def test_an_index_that_cannot_be_is_told_with_those_that_can(
    start: Start, folder: Path, returned: str, reason: str
) -> None:
    file = folder / "echo.py"
    source = ECHO.replace("len(buffer) + 1", returned)
    file.write_text(source)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    with Lines(port) as client:
        client.send(b"one\nbehind\n")
        assert client.read_to_end().startswith(b"one\n! plugin: plug-in 'echo.py' failed in unserialize")
    fleet.wait_log("plugin.failed")
    (row,) = failed(fleet.read_log())
    at = f"{file}:{line_of(source, 'def unserialize')}"
    assert row.startswith(f'function=unserialize instance=echo{port} at={at} error="{reason}')
    assert ' asked=buffer[4:11] ' in row


def test_a_request_that_fails_is_named(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    with Lines(port) as client:
        assert client.ask(b"map\n") == [b"! plugin: plug-in 'echo.py' failed in map"]
    fleet.wait_log(f'asked="echo, key {digest(b"map")}"')
