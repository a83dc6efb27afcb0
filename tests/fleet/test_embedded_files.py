"""What a fleet leaves of its SQLite files when it ends, or when an instance goes: everything in the file itself."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.key_values import sqlite_level
from tests.kit.ports import free_port
from tests.kit.wait import wait_for

HEAD = "[proxy]\nworkers = 4\ndrain_timeout_s = 1\n"
INSTANCE = """
[[instance]]
name = "{name}"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
"""
KEYS = 50


def instance(name: str, port: int, file: Path) -> str:
    return INSTANCE.format(name=name, port=port) + sqlite_level(str(file))


def fill(port: int) -> None:
    with redis.Redis(port=port) as client:
        for number in range(KEYS):
            client.set(f"key{number}", "x" * 1000)


def items(file: Path) -> int:
    """As somebody finds them who copies the file alone."""
    copy = file.with_name("copy.db")
    copy.write_bytes(file.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        count: int = connection.execute("SELECT count(*) FROM item").fetchone()[0]
    return count


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_stopped_fleet_leaves_one_file_with_all_data(
    start_fleet: Callable[[str], Fleet], tmp_path: Path, number: signal.Signals
) -> None:
    folder, ports = tmp_path / "data", (free_port(), free_port())
    file = folder / "keys.db"
    fleet = start_fleet(HEAD + instance("a", ports[0], file) + instance("b", ports[1], file))
    for slot in range(4):
        fleet.wait_log(f"worker.ready slot={slot} ")  # INT kills one that is born too slowly, and it can't close a file
    fill(ports[0])
    assert "keys.db-wal" in files(folder)
    fleet.send_signal(number)
    fleet.process.wait(10)
    assert files(folder) == ["keys.db"], fleet.read_log()
    assert items(file) == KEYS
    assert fleet.read_log().count("info storage.created instance=") == 1, "one of all workers has made it"


def test_workers_that_are_being_born_when_the_fleet_ends_close_their_files(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    instances = [instance(f"i{index}", free_port(), folder / f"{index}.db") for index in range(40)]  # it takes a while
    text = "[proxy]\nworkers = 1\ndrain_timeout_s = 20\n" + "".join(instances)
    with Fleet(text, tmp_path):
        pass  # the files are made
    with Fleet(text, tmp_path, ready=False) as fleet:
        wait_for(lambda: list(folder.glob("*-wal")), "the worker has opened a file")
        fleet.send_signal(signal.SIGTERM)
        assert fleet.process.wait(20) == 0
        assert "worker.ready" not in fleet.read_log()
        assert [name for name in files(folder) if not name.endswith(".db")] == [], fleet.read_log()


def test_of_an_instance_that_a_reload_removes_nothing_is_left_beside_its_file(
    start_fleet: Callable[[str], Fleet], tmp_path: Path
) -> None:
    """Also when the fleet ends before the requests that may have begun must have ended."""
    folder, ports = tmp_path / "data", (free_port(), free_port())
    file = folder / "gone.db"
    stays = HEAD + instance("stays", ports[0], tmp_path / "stays.db")
    fleet = start_fleet(stays + instance("goes", ports[1], file))
    fill(ports[1])
    fleet.write(stays)
    assert fleet.reload().accepted
    fleet.stop()
    assert files(folder) == ["gone.db"], fleet.read_log()
    assert items(file) == KEYS
