"""Plug-ins that fail while they serve: who is told what, what is counted and logged, and that the worker survives."""

from __future__ import annotations

import re
from pathlib import Path

import psutil
import pytest
import redis

from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.texts import ECHO, config, instance

SLOW = '''
from gevent.monkey import get_original
from hyper_proxy import plugin

sleep = get_original("time", "sleep")  # really blocks, as a library in C would


@plugin.storage("slow", files=True)
class Slow(plugin.ReadOnly):
    def __init__(self, server, level):
        if server.file.endswith("refused"):
            raise ValueError("no such place")

    def get_many(self, keys):
        if b"broken" in keys:
            return keys[1000]
        if b"slow" in keys:
            sleep(1.5)
        if b"late" in keys:
            sleep(0.5)
            raise OSError("the disk is gone")
        return [plugin.Item(b"here", 0, None, 0) for key in keys]

    def count(self):
        return 0

    def scan(self, cursor, limit):
        return 0, []
'''


WICKED = """
import gevent
from hyper_proxy import plugin


class Dumb(Exception):
    def __str__(self):
        raise ValueError("no words")


RAISED = {b"exit": SystemExit(3), b"break": KeyboardInterrupt(), b"timeout": gevent.Timeout(1), b"dumb": Dumb(),
          b"greenlet": gevent.GreenletExit()}
RETURNED = {b"short": [], b"long": [None] * 50, b"none": None}


@plugin.storage("wicked", files=True)
class Wicked(plugin.ReadOnly):
    def __init__(self, server, level):
        pass

    def get_many(self, keys):
        if keys[0] in RAISED:
            raise RAISED[keys[0]]
        return RETURNED.get(keys[0], [plugin.Item(b"here", 0, None, 0) for key in keys])

    def count(self):
        return 0

    def scan(self, cursor, limit):
        return 0, []
"""


def line_of(text: str, part: str) -> int:
    """The number of the line that has this."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


@pytest.mark.parametrize(
    ("word", "function", "line", "error"),
    [
        ("split", "split", 'raise KeyError("split")', "KeyError: 'split'"),
        ("seven", "split", "def split", "a list is wanted, not 7"),
        ("map", "map", 'return {}["map"]', "KeyError: 'map'"),
        ("exit", "map", 'raise SystemExit("exit")', "SystemExit: exit"),
        ("greenlet", "map", "raise gevent.GreenletExit", "GreenletExit"),
        ("late", "map", "raise gevent.Timeout(5)", "Timeout: 5 seconds"),
        ("reduce", "reduce", "return results[5]", "IndexError: list index out of range"),
        ("text", "serialize", "def serialize", "bytes is wanted, not 'text'"),
    ],
)
def test_a_request_that_fails_costs_one_answer(
    start: Start, folder: Path, word: str, function: str, line: str, error: str
) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    with Lines(port) as client:
        answers = client.ask(f"one\n{word}\ntwo\n".encode(), lines=3)
        assert answers == [b"one", f"! plugin: plug-in 'echo.py' failed in {function}".encode(), b"two"]
    fleet.wait_log("plugin.failed")
    logged = next(row for row in fleet.read_log().splitlines() if "plugin.failed" in row)
    assert f"plugin=echo.py function={function} instance=echo{port} " in logged
    assert f"at={folder / 'echo.py'}:{line_of(ECHO, line)} " in logged
    assert error in logged
    wait_for(lambda: fleet.stats()["instances"][f"echo{port}"]["errors"] == {"plugin": 1}, "it is counted")


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("lost", b"! plugin: plug-in 'echo.py' failed in unserialize\n"),
        ("behind", b"! plugin: plug-in 'echo.py' failed in unserialize\n"),
        ("malformed", b"! client: this is no request\n"),
    ],
)
def test_where_the_next_request_is_unknown_the_connection_ends(
    start: Start, folder: Path, word: str, answer: bytes
) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    start(config(["echo.py"], instance("echo", port)))
    with Lines(port) as client, Lines(port) as other:
        client.send(f"one\n{word}\ntwo\n".encode())
        assert client.read_to_end() == b"one\n" + answer
        assert other.ask(b"three\n") == [b"three"]


def test_a_plug_in_that_cannot_even_refuse_costs_the_connection(start: Start, folder: Path) -> None:
    refuse = '        if error.kind == "plugin":\n            raise OSError("no words")\n        return f"!'
    (folder / "echo.py").write_text(ECHO.replace('        return f"!', refuse))
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    with Lines(port) as client, Lines(port) as other:
        client.send(b"one\nsplit\ntwo\n")
        assert client.read_to_end() == b"one\n"
        assert other.ask(b"three\n") == [b"three"]
    fleet.wait_log("function=refuse")
    wait_for(lambda: fleet.stats()["instances"][f"echo{port}"]["errors"] == {"plugin": 2}, "both are counted")


def test_a_function_that_does_not_come_back_costs_its_request(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    before = fleet.worker_pids()
    with Lines(port) as client, Lines(port) as other:
        client.send(b"one\nspin\ntwo\n")
        assert client.lines(3) == [b"one", b"! plugin: plug-in 'echo.py' failed in map", b"two"]
        assert other.ask(b"three\n") == [b"three"]
        client.send(b"doze\nfour\n")  # waits, as for a storage: nobody else does
        assert other.ask(b"five\n") == [b"five"]
        assert client.lines(2) == [b"doze", b"four"]
    fleet.wait_log("it has not come back within 1 s")
    assert f"at={folder / 'echo.py'}:{line_of(ECHO, 'while True')}" in fleet.read_log()
    assert fleet.read_log().count("plugin.failed") == 1
    assert fleet.worker_pids() == before


def test_a_worker_that_nothing_else_frees_is_replaced(start: Start, folder: Path) -> None:
    loop = "try:\n                    while True:\n                        pass\n                except Exception:\n"
    spin = "while True:\n                "
    stuck = ECHO.replace(f"{spin}pass", f"{spin}{loop}                    pass")
    (folder / "echo.py").write_text(stuck)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port), proxy="hang_timeout_s = 2"))
    (pid,) = fleet.worker_pids()
    with Lines(port) as client:
        client.send(b"spin\n")
        assert client.read_to_end() == b""
    wait_for(lambda: fleet.worker_pids() not in ([pid], []), "another worker is there", 20)
    assert re.search(rf'{folder / "echo.py"}", line [0-9]+ in map', fleet.read_log())
    with Lines(port) as client:
        assert client.ask(b"well\n") == [b"well"]


def test_a_storage_that_blocks_fails_its_requests_and_holds_up_nobody(start: Start, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    port, other = free_port(), free_port()
    more = "timeout = { read_ms = 300, queue_ms = 100 }"
    fleet = start(
        config(["slow.py"], instance("redis", port, "slow", ["x"], more), instance("memcache", other), proxy="")
    )
    clients = [redis.Redis(port=port, socket_timeout=10) for _ in range(9)]
    for client in clients[:8]:
        assert client.get("quick") == b"here"
    pipes = [Lines(port) for _ in range(8)]
    for pipe in pipes:
        pipe.send(b"GET slow\r\n")
    answers = {pipe.raw.file.readline() for pipe in pipes}
    where = f"instance 'redis{port}' node '{folder / 'x'}'"
    assert answers == {f"-ERR {where}: get_many has not ended within 0.3 s\r\n".encode()}
    with pytest.raises(redis.ResponseError, match=r"8 requests are with the plug-in, and none has ended within 0\.1 s"):
        clients[8].get("quick")
    wait_for(lambda: answers_again(clients[8]), "the threads come back")
    for pipe in pipes:
        pipe.raw.close()
    at = f"{folder / 'slow.py'}:{line_of(SLOW, 'sleep(1.5)')}"
    fleet.wait_log(f"function=get_many instance=redis{port} at={at} ")
    errors = fleet.stats()["instances"][f"redis{port}"]["errors"]
    assert errors["timeout"] == 8
    assert errors["queue"] >= 1


def test_a_storage_that_fails_when_nobody_waits_any_more_is_told_in_the_log(start: Start, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    port = free_port()
    fleet = start(config(["slow.py"], instance("redis", port, "slow", ["x"], "timeout = { read_ms = 100 }")))
    with pytest.raises(redis.ResponseError, match=r"get_many has not ended within 0\.1 s"):
        redis.Redis(port=port).get("late")
    fleet.wait_log('error="when nobody waited for it any more: OSError: the disk is gone"')
    at = f"{folder / 'slow.py'}:{line_of(SLOW, 'the disk is gone')}"
    assert f"function=get_many instance=redis{port} at={at} " in fleet.read_log()
    assert fleet.stats()["instances"][f"redis{port}"]["errors"]["timeout"] == 1, "once"


def answers_again(client: redis.Redis) -> bool:
    try:
        return client.get("quick") == b"here"
    except redis.ResponseError as error:
        assert "8 requests are with the plug-in" in str(error)
        return False


def test_a_storage_that_raises_is_named_with_its_line(start: Start, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    port = free_port()
    fleet = start(config(["slow.py"], instance("redis", port, "slow", ["x"])))
    client = redis.Redis(port=port)
    with pytest.raises(redis.ResponseError, match=r"node '.*/x': plug-in 'slow.py' failed in get_many"):
        client.get("broken")
    assert client.get("well") == b"here"
    with pytest.raises(redis.ResponseError, match="this storage can only be read"):
        client.set("well", "x")
    fleet.wait_log(f"at={folder / 'slow.py'}:{line_of(SLOW, 'keys[1000]')}")


@pytest.mark.parametrize("key", ["exit", "break", "timeout", "greenlet", "dumb", "short", "long", "none"])
def test_whatever_a_storage_does_costs_one_answer(start: Start, folder: Path, key: str) -> None:
    (folder / "wicked.py").write_text(WICKED)
    port = free_port()
    fleet = start(config(["wicked.py"], instance("redis", port, "wicked", ["x"])))
    pids = fleet.worker_pids()
    with redis.Redis(port=port, single_connection_client=True) as client:
        number = client.client_id()
        for ask in (lambda: client.get(key), lambda: client.mget(key, "well")):
            with pytest.raises(redis.ResponseError, match=r"plug-in 'wicked.py' failed in get_many"):
                ask()
        assert client.mget("well", "good") == [b"here", b"here"]
        assert client.client_id() == number, "the same connection"
    assert fleet.worker_pids() == pids


def test_a_storage_that_cannot_be_made_is_refused_by_a_reload(start: Start, folder: Path) -> None:
    (folder / "slow.py").write_text(SLOW)
    port = free_port()
    text = config(["slow.py"], instance("redis", port, "slow", ["x"]))
    fleet = start(text)
    fleet.write(text.replace('["x"]', '["refused"]'))
    verdict = fleet.reload()
    assert not verdict.accepted
    assert f"plug-in 'slow.py' can't serve it: ValueError: no such place ({folder / 'slow.py'}:" in str(verdict.body)
    assert redis.Redis(port=port).get("well") == b"here"


def test_storages_that_reloads_took_away_leave_no_thread_behind(start: Start, folder: Path) -> None:
    released = '    def release(self, successor):\n        print("released", flush=True)\n\n    def count(self):'
    (folder / "slow.py").write_text(SLOW.replace("    def count(self):", released))
    port = free_port()
    fleet = start(config(["slow.py"], instance("redis", port, "slow", ["x"], "timeout = { read_ms = 500 }")))
    client = redis.Redis(port=port)
    (pid,) = fleet.worker_pids()
    assert client.get("quick") == b"here"
    used = psutil.Process(pid).num_threads()
    for read_ms in range(501, 505):
        text = fleet.file.read_text()
        fleet.file.write_text(re.sub("read_ms = [0-9]+", f"read_ms = {read_ms}", text))
        assert fleet.reload().accepted
        assert client.get("quick") == b"here"
    assert psutil.Process(pid).num_threads() > used
    wait_for(lambda: psutil.Process(pid).num_threads() <= used, "the threads have ended", 30)
    assert fleet.worker_pids() == [pid]
    wait_for(lambda: fleet.read_log().count("released") == 4, "each was let go, once")
