"""What a plug-in's `change` does to others who use the same storage: it may run in the one thread of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.texts import ECHO, config, instance

MAP = """
        def change(items):
            if part == b"leave":
                raise SystemExit("leave")
            if part == b"nested":
                storage.store(b"other", b"1")
            while part == b"hold":
                pass
            return [plugin.Put(b"%d" % len(items))], b"stored"
        return storage.update([b"key"], change)[0]
"""
CHANGING = ECHO.replace("\n        return part\n", MAP)
FAILED = b"! plugin: plug-in 'echo.py' failed in map"
NESTED = "RuntimeError: the storage can't be asked by `change`, nor in a thread"


@pytest.mark.parametrize(
    ("word", "places", "error"),
    [
        ("leave", ["raise SystemExit"], "SystemExit: leave"),
        ("nested", ["storage.store"], NESTED),
        ("hold", ["while part", "    pass"], "TooLong: it has not come back within 1 s"),
    ],
)
def test_a_change_that_fails_or_hangs_costs_its_own_client_alone(
    start: Start, folder: Path, word: str, places: list[str], error: str
) -> None:
    (folder / "echo.py").write_text(CHANGING)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    before = fleet.worker_pids()
    with Lines(port) as client, Lines(port) as other:
        client.send(f"{word}\nwell\n".encode())
        answer = other.ask(b"well\n")  # it may come before the other, and else is not kept waiting for ever
        assert answer == [b"stored"] or (word == "hold" and b"! queue: " in answer[0])
        assert client.lines(2) == [FAILED, b"stored"]
        assert other.ask(b"well\n") == [b"stored"]
    fleet.wait_log(error)
    lines = [number for number, text in enumerate(CHANGING.splitlines(), 1) if any(one in text for one in places)]
    assert any(f"at={folder / 'echo.py'}:{number} " in fleet.read_log() for number in lines)
    assert "worker.fault" not in fleet.read_log()
    assert fleet.worker_pids() == before


def test_where_change_runs_beside_the_others_it_may_do_as_it_likes(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(CHANGING)
    port = free_port()
    with redis_server() as server:
        start(config(["echo.py"], instance("echo", port, "redis", [server.address])))
        with Lines(port) as client:
            assert client.ask(b"nested\nleave\nwell\n", 3) == [b"stored", FAILED, b"stored"]
