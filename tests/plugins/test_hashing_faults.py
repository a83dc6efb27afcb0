"""A hash or a distribution of a plug-in that fails while it serves costs the request whose key it was, and no other."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hyper_proxy.common.keyname import digest
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_faults import line_of
from tests.plugins.test_toy import explain
from tests.plugins.texts import config, instance

FAITHLESS = '''
import gevent
from hyper_proxy import plugin

WRONG = {b"raises": KeyError("raises"), b"exits": SystemExit(3), b"leaves": gevent.GreenletExit(),
         b"blames": plugin.ClientError("no such key")}
NONSENSE = {b"none": None, b"text": "7", b"below": -1, b"beyond": 2**64}


def digits(key):
    return int(bytes(byte for byte in key if byte in b"0123456789") or b"0")


@plugin.hash_function("faithless")
def faithless(key):
    if key in WRONG:
        raise WRONG[key]
    return NONSENSE.get(key, digits(key))


plugin.hash_function("digits")(digits)


@plugin.distribution("lost", hash="digits")
def lost(servers):
    def choose(value):
        if value == 1300:
            return {}[value]
        return len(servers) if value == 1400 else value % len(servers)

    return choose
'''

HASH = 'hash = "faithless"\n  distribution = "modula"'
LOST = 'distribution = "lost"'
KEYS = ["raises", "exits", "leaves", "blames", "none", "text", "below", "beyond"]
TWO_LEVELS = """
[[instance]]
name = "two"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{above}]
  {first}
  [[instance.level]]
  storage = "redis"
  servers = [{below}]
  {second}
"""


@pytest.fixture
def faithless(folder: Path) -> Path:
    """The plug-in's file."""
    file = folder / "faithless.py"
    file.write_text(FAITHLESS)
    return file


def of_nodes(nodes: list[Running]) -> list[str]:
    return [node.address for node in nodes]


def is_told(fleet: Fleet, name: str, times: int, function: str, at: str, error: str, asked: str) -> None:
    """It is counted so often, and the log names the line, and what it was asked."""
    wait_for(lambda: fleet.stats()["instances"][name]["errors"] == {"plugin": times}, "it is counted")
    fleet.wait_log("plugin.failed")
    logged = next(row for row in fleet.read_log().splitlines() if "plugin.failed" in row)
    assert f'plugin=faithless.py function="{function}" instance={name} at={at} error=' in logged
    assert error in logged
    assert f' asked="{asked}"' in logged
    assert "worker.fault" not in fleet.read_log()


@pytest.mark.parametrize("key", KEYS)
def test_a_hash_costs_one_answer_of_redis(start: Start, faithless: Path, redis_nodes: list[Running], key: str) -> None:
    port = free_port()
    fleet = start(config(["faithless.py"], instance("redis", port, "redis", of_nodes(redis_nodes), HASH)))
    before = fleet.worker_pids()
    wrong = b"-ERR plug-in 'faithless.py' failed in hash 'faithless'"
    with Lines(port) as client:
        for _ in range(2):
            said = f"SET k1 a\r\nGET {key}\r\nGET k1\r\nMGET k1 {key} k2\r\nPING\r\nMGET k1 k2\r\n".encode()
            answers = client.ask(said, lines=10)
            assert [line.strip() for line in answers] == [
                b"+OK", wrong, b"$1", b"a", wrong, b"+PONG", b"*2", b"$1", b"a", b"$-1",
            ]  # fmt: skip
    line = line_of(FAITHLESS, "raise WRONG" if key in KEYS[:4] else '@plugin.hash_function("faithless")')
    at = f"{faithless}:{line}"
    error = {"raises": "KeyError: 'raises'", "exits": "SystemExit: 3", "leaves": "GreenletExit"}.get(key, key)
    error = {"blames": "no such key", "none": "not None", "text": "not '7'", "below": "not -1"}.get(key, error)
    error = error if key != "beyond" else str(2**64)
    is_told(fleet, f"redis{port}", 4, "hash 'faithless'", at, error, f"key {digest(key.encode())}")
    assert fleet.worker_pids() == before


@pytest.mark.parametrize(
    "said",
    [
        "*2\r\n$3\r\nGET\r\n$6\r\nraises\r\n",
        "*3\r\n$4\r\nMGET\r\n$6\r\nraises\r\n$1\r\na\r\n",
        "DEL raises a\r\n",
        "MSET a 1 raises 2\r\n",
        "RENAME a raises\r\n",
        "EVAL x 1 raises\r\n",
        "BLPOP raises 1\r\n",
        "WATCH raises\r\n",
    ],
)
def test_whatever_is_asked_of_redis(start: Start, faithless: Path, redis_nodes: list[Running], said: str) -> None:
    port = free_port()
    fleet = start(config(["faithless.py"], instance("redis", port, "redis", of_nodes(redis_nodes), HASH)))
    with Lines(port) as client:
        answers = client.ask(f"{said}SET k1 a\r\n{said}{said}GET k1\r\n".encode(), lines=6)
        wrong = b"-ERR plug-in 'faithless.py' failed in hash 'faithless'\r"
        assert answers == [wrong, b"+OK\r", wrong, wrong, b"$1\r", b"a\r"]
    stats = fleet.stats()["instances"][f"redis{port}"]
    assert stats["errors"] == {"plugin": 3}
    assert sum(stats["requests"].values()) == 5


def test_a_transaction_is_spoilt(start: Start, faithless: Path, redis_nodes: list[Running]) -> None:
    port = free_port()
    start(config(["faithless.py"], instance("redis", port, "redis", of_nodes(redis_nodes), HASH)))
    with Lines(port) as client:
        answers = client.ask(b"MULTI\r\nSET raises a\r\nSET k1 b\r\nEXEC\r\nGET k1\r\n", lines=5)
    assert answers[1] == b"-ERR plug-in 'faithless.py' failed in hash 'faithless'\r"
    assert answers[3].startswith(b"-EXECABORT ")
    assert answers[4] == b"$-1\r"


def test_a_distribution_costs_one_answer_of_memcache(
    start: Start, faithless: Path, memcached_nodes: list[Running]
) -> None:
    port = free_port()
    fleet = start(config(["faithless.py"], instance("memcache", port, "memcache", of_nodes(memcached_nodes), LOST)))
    wrong = b"SERVER_ERROR plug-in 'faithless.py' failed in distribution 'lost'\r"
    with Lines(port) as client:
        said = (
            b"set k1 0 0 1\r\na\r\nget k1300\r\nget k1\r\nget k1 k1400 k2\r\nset k1300 0 0 1\r\nb\r\n"
            b"set k1400 0 0 1 noreply\r\nc\r\nmg k1300 v\r\nmg k1 v\r\nversion\r\n"
        )
        for _ in range(2):
            answers = client.ask(said, lines=11)
            assert answers[:5] == [b"STORED\r", wrong, b"VALUE k1 0 1\r", b"a\r", b"END\r"]
            assert answers[5:10] == [wrong, wrong, wrong, b"VA 1\r", b"a\r"]
            assert answers[10].startswith(b"VERSION ")
    is_told(
        fleet, f"memcache{port}", 10, "distribution 'lost'", f"{faithless}:{line_of(FAITHLESS, 'return {}')}",
        "KeyError: 1300", "the number 1300 of a key",
    )  # fmt: skip


def test_a_hash_costs_one_answer_of_http(start: Start, faithless: Path, redis_nodes: list[Running]) -> None:
    port = free_port()
    fleet = start(config(["faithless.py"], instance("http", port, "redis", of_nodes(redis_nodes), HASH)))
    client = HTTPConnection("127.0.0.1", port)
    seen = []
    for method, key in (("PUT", "k1"), ("GET", "raises"), ("PUT", "none"), ("GET", "k1")):
        client.request(method, f"/v1/http{port}/{key}", body=b"a" if method == "PUT" else None)
        used = client.sock
        response = client.getresponse()
        seen.append((response.status, response.read()))
        assert client.sock is used, "the same connection"
    assert [status for status, _ in seen] == [201, 502, 502, 200]
    assert json.loads(seen[1][1])["error"] == {
        "code": "storage_plugin", "message": "plug-in 'faithless.py' failed in hash 'faithless'",
    }  # fmt: skip
    at = f"{faithless}:{line_of(FAITHLESS, 'raise WRONG')}"
    is_told(fleet, f"http{port}", 2, "hash 'faithless'", at, "KeyError: 'raises'", f"key {digest(b'raises')}")


@pytest.mark.parametrize(("first", "second"), [(HASH, ""), ("", HASH)])
def test_a_hash_of_a_level_costs_one_answer(
    start: Start, faithless: Path, redis_nodes: list[Running], first: str, second: str
) -> None:
    port = free_port()
    listed = [f'"{node.address}"' for node in redis_nodes]
    several, one = ", ".join(listed[:2]), listed[2]
    servers = {"above": several, "below": one} if first else {"above": one, "below": several}
    two = TWO_LEVELS.format(port=port, first=first, second=second, **servers)
    fleet = start(config(["faithless.py"], two))
    wrong = b"-ERR plug-in 'faithless.py' failed in hash 'faithless'\r"
    with Lines(port) as client:
        get = b"*2\r\n$3\r\nGET\r\n$6\r\nraises\r\n"
        answers = client.ask(b"SET k1 a\r\n" + get + b"SET raises 1\r\nGET k1\r\nMGET k1 raises\r\nDEL raises\r\n", 7)
        assert answers == [b"+OK\r", wrong, wrong, b"$1\r", b"a\r", wrong, wrong]
        assert client.ask(get + b"*2\r\n$3\r\nGET\r\n$2\r\nk1\r\n" + get, 4) == [wrong, b"$1\r", b"a\r", wrong]
    at = f"{faithless}:{line_of(FAITHLESS, 'raise WRONG')}"
    is_told(fleet, "two", 6, "hash 'faithless'", at, "KeyError: 'raises'", f"key {digest(b'raises')}")


def test_explain_names_the_line(faithless: Path) -> None:
    file = faithless.with_name("hp.toml")
    file.write_text(config(["faithless.py"], instance("redis", 6380, "redis", ["127.0.0.1:1", "127.0.0.1:2"], HASH)))
    where = f"{faithless}:{line_of(FAITHLESS, 'raise WRONG')}"
    told = f"plug-in 'faithless.py' failed in hash 'faithless' with key b'raises': KeyError: 'raises' ({where})\n"
    assert explain(file, "redis6380", "GET", "raises", status=1) == f"hyper-proxy: {told}"
