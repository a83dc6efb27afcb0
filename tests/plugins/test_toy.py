"""The example protocol, served by a real fleet as the built-in ones are."""

from __future__ import annotations

import json
import subprocess

import redis

from tests.kit.fleet import COMMAND, ROOT
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.texts import config, instance


def test_a_protocol_of_six_functions_shares_keys_with_redis_clients(start: Start) -> None:
    toy, other = free_port(), free_port()
    start(config(["toy.py"], instance("toy", toy), instance("redis", other)))
    client = redis.Redis(port=other)
    with Lines(toy) as raw:
        assert raw.ask(b"set a 12\nset b 30\nset c hello world\n", lines=3) == [b"ok", b"ok", b"ok"]
        assert client.mget("a", "b", "c") == [b"12", b"30", b"hello world"]
        client.set("d", "-2")
        assert raw.ask(b"get a d nothing\nsum a b d nothing\n", lines=4) == [b"=12", b"=-2", b"-", b"=40"]


def test_requests_come_in_any_pieces_and_are_answered_in_order(start: Start) -> None:
    port = free_port()
    start(config(["toy.py"], instance("toy", port)))
    data = b"set k 5\n" + b"get k\n" * 50 + b"sum k k\nget x\n"
    wanted = [b"ok", *[b"=5"] * 50, b"=10", b"-"]
    with Lines(port) as raw:
        assert raw.ask(data, lines=len(wanted)) == wanted
        for byte in range(len(data)):
            raw.send(data[byte : byte + 1])
        assert raw.lines(len(wanted)) == wanted


def test_errors_of_clients_leave_the_connection_open_and_are_counted(start: Start) -> None:
    port = free_port()
    limits = "max_key_bytes = 8\n  max_value_bytes = 10\n  max_arguments = 16"
    fleet = start(config(["toy.py"], instance("toy", port, limits=limits)))
    with Lines(port) as raw:
        answers = raw.ask(
            b"fly me\nget\nget 123456789\nset a 12345678901\nget " + b"k " * 17 + b"\nset a x\nsum a\nget a\n", lines=8
        )
        assert answers == [
            b"!client there is no command 'fly': get, set, sum and quit are",
            b"!client get takes a key",
            b"!client a key is longer than limits.max_key_bytes (8)",
            b"!client a value is longer than limits.max_value_bytes (10)",
            b"!client there are more keys and values than limits.max_arguments (16)",
            b"ok",
            b"!client a value is no number",
            b"=x",
        ]
    name = f"toy{port}"

    def figures() -> dict[str, object]:
        row: dict[str, object] = fleet.stats()["instances"][name]
        return row

    wait_for(lambda: figures()["errors"] == {"client": 6}, "six errors")
    assert figures()["requests"] == {"read": 6, "idempotent": 2, "write": 0, "admin": 0}


def test_the_last_request_of_a_connection_is_answered(start: Start) -> None:
    port = free_port()
    start(config(["toy.py"], instance("toy", port)))
    with Lines(port) as raw:
        raw.send(b"set a 1\nquit\nset a 2\n")
        assert raw.read_to_end() == b"ok\nbye\n"
    with Lines(port) as raw:
        assert raw.ask(b"get a\n", lines=1) == [b"=1"]


def test_a_request_that_grows_beyond_its_limit_ends_the_connection(start: Start) -> None:
    port = free_port()
    start(config(["toy.py"], instance("toy", port, limits='max_request_bytes = "64KB"')))
    with Lines(port) as raw:
        raw.send(b"get " + b"x" * 70_000)
        answer = raw.read_to_end()
    assert answer == b"!client the request is longer than limits.max_request_bytes (65536)\n"


def test_slow_requests_are_recorded_with_command_and_key(start: Start) -> None:
    port = free_port()
    text = config(["toy.py"], instance("toy", port)) + "\n[log]\naccess_sample = 1.0\n"
    fleet = start(text)
    with Lines(port) as raw:
        assert raw.ask(b"set kiwi 3\n", lines=1) == [b"ok"]
    fleet.wait_log("request.sampled")
    line = next(line for line in fleet.read_log().splitlines() if "request.sampled" in line)
    assert f"instance=toy{port}" in line
    assert "command=set" in line
    assert "keys=1" in line


def test_it_can_stand_above_levels_and_explain_shows_their_places(start: Start, redis_nodes: list[Running]) -> None:
    port = free_port()
    servers = ", ".join(f'"{node.address}:1 n{at}"' for at, node in enumerate(redis_nodes))
    level = f'[[instance.level]]\n  storage = "redis"\n  servers = [{servers}]\n'
    one = instance("toy", port).replace("[[instance.level]]\n", level + "  [[instance.level]]\n")
    fleet = start(config(["toy.py"], one))
    with Lines(port) as raw:
        assert raw.ask(b"set melon 7\nget melon\nget melon\n", lines=3) == [b"ok", b"=7", b"=7"]
    shown = explain(fleet.file, "--json", f"toy{port}", "sum", "melon", "kiwi")
    found = json.loads(shown)
    assert found["command"]["class"] == "read"
    assert [key["key"] for key in found["keys"]] == ["melon", "kiwi"]
    home, below = found["keys"][0]["levels"]
    assert (home["storage"], below["storage"]) == ("redis", "sqlite")
    addresses = {node.address for node in redis_nodes}
    assert home["node"] in addresses
    keeping = next(node for node in redis_nodes if node.address == home["node"])
    wait_for(lambda: redis.Redis(port=keeping.port).exists("melon"), "a copy where explain says")


def test_explain_refuses_what_the_plug_in_takes_for_no_request(start: Start) -> None:
    port = free_port()
    fleet = start(config(["toy.py"], instance("toy", port)))
    assert "there is no command 'fly'" in explain(fleet.file, f"toy{port}", "fly", "me", status=2)
    assert "plug-in 'toy.py' makes 2 parts of it" in explain(fleet.file, f"toy{port}", "get", "a", "b")


def explain(file: object, *words: str, status: int = 0) -> str:
    """What `hyper-proxy explain` says."""
    command = [*COMMAND, "explain", "-c", str(file), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr
