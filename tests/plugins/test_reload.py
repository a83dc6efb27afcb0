"""Reloads with plug-ins: new code takes new workers, a broken one is refused, and workers never differ."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.kit.fleet import Fleet
from tests.kit.installed import REAL, Installed
from tests.kit.ports import free_port
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines, replacing_the_worker
from tests.plugins.texts import ECHO, config, instance

LOUD = ECHO.replace('reply + b"\\n"', 'reply.upper() + b"\\n"')


def test_a_reload_takes_the_new_code_of_a_plug_in(start: Start, folder: Path) -> None:
    assert LOUD != ECHO
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    before = fleet.worker_pids()
    assert "unchanged" in str(fleet.reload().body)
    assert fleet.worker_pids() == before
    (folder / "echo.py").write_text(LOUD)
    with Lines(port) as client:
        assert client.ask(b"still the old one\n") == [b"still the old one"]
        verdict = fleet.reload()
        assert verdict.accepted, verdict.body
        assert client.read_to_end() == b""  # its worker has ended, within drain_timeout_s
    with Lines(port) as client:
        assert client.ask(b"new\n") == [b"NEW"]
    assert fleet.worker_pids() != before


def test_a_broken_plug_in_is_refused_and_the_old_code_serves_on(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    text = config(["echo.py"], instance("echo", port))
    fleet = start(text)
    with Lines(port) as client:
        (folder / "echo.py").write_text(ECHO + "\nundefined\n")
        verdict = fleet.reload()
        assert not verdict.accepted
        wanted = f"{folder / 'echo.py'}:{len(ECHO.splitlines()) + 2}: NameError: name 'undefined' is not defined"
        assert wanted in str(verdict.body)
        assert f"{fleet.file}:2: error: HP111" in str(verdict.body)
        assert client.ask(b"on and on\n") == [b"on and on"]
        (folder / "echo.py").unlink()
        assert not fleet.reload().accepted
        assert client.ask(b"and on\n") == [b"and on"]


def test_a_worker_that_follows_another_runs_the_code_in_force(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    (folder / "echo.py").write_text("this is no Python")
    before = fleet.kill_worker()
    wait_for(lambda: fleet.worker_pids() not in ([], [before]), "another worker", 20)
    with Lines(port) as client:
        assert client.ask(b"hello\n") == [b"hello"]


def test_a_plug_in_comes_and_goes_with_a_reload(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port, toy = free_port(), free_port()
    without = config(["toy.py"], instance("toy", toy))
    fleet = start(without)
    with replacing_the_worker(toy):
        fleet.write(config(["toy.py", "echo.py"], instance("toy", toy), instance("echo", port)))
        assert fleet.reload().accepted
    with Lines(port) as echo, Lines(toy) as client:
        assert echo.ask(b"here\n") == [b"here"]
        assert client.ask(b"set a 1\nget a\n", lines=2) == [b"ok", b"=1"]
    fleet.write(config(["toy.py"], instance("toy", toy), instance("echo", port)))
    refused = fleet.reload()
    assert not refused.accepted
    assert "'echo' is none of redis, memcache, http, toy" in str(refused.body)
    with replacing_the_worker(toy):
        fleet.write(without)
        assert fleet.reload().accepted
    with Lines(toy) as client:
        assert client.ask(b"get a\n") == [b"=1"]


def test_a_reload_of_other_things_keeps_clients_and_workers(start: Start) -> None:
    port = free_port()
    text = config(["toy.py"], instance("toy", port))
    fleet = start(text)
    before = fleet.worker_pids()
    with Lines(port) as client:
        assert client.ask(b"set a 12345\n") == [b"ok"]
        fleet.write(text.replace("[instance.limits]", "[instance.limits]\n  max_value_bytes = 3"))
        assert fleet.reload().accepted
        assert client.ask(b"get a\nset a 1234\n", lines=2) == [
            b"=12345", b"!client a value is longer than limits.max_value_bytes (3)",
        ]  # fmt: skip
    assert fleet.worker_pids() == before


def test_what_is_in_force_is_shown_of_plug_ins_too(start: Start, folder: Path) -> None:
    port = free_port()
    fleet = start(config(["folder.py"], instance("redis", port, "folder", ["pages one"], 'hash = "md5"')))
    status, body = fleet.http("GET", "/config")
    assert status == 200
    shown = {row["key"]: row["value"] for row in json.loads(body)["settings"]}
    assert shown["proxy.plugins"] == '["folder.py"]'
    assert shown[f"instance[redis{port}].level[0].hash"] == '"md5"'
    assert shown[f"instance[redis{port}].level[0].distribution"] == '"ketama"'


def test_a_plug_in_that_only_fails_in_workers_is_refused_with_its_line(start: Start, folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    fleet = start(config(["echo.py"], instance("echo", port)))
    picky = "import os\nif os.getppid() == %d and 'gevent.monkey' in __import__('sys').modules:\n    1 / 0\n"
    (folder / "echo.py").write_text(picky % fleet.process.pid + ECHO)
    verdict = fleet.reload()
    assert not verdict.accepted
    text = f"plug-in 'echo.py' cannot be loaded: {folder / 'echo.py'}:3: ZeroDivisionError: division by zero"
    assert text in str(verdict.body)
    with Lines(port) as client:
        assert client.ask(b"still here\n") == [b"still here"]


def test_an_upgrade_takes_plug_ins_along(folder: Path) -> None:
    (folder / "echo.py").write_text(ECHO)
    port = free_port()
    program = Installed(folder, REAL)
    with Fleet(config(["echo.py"], instance("echo", port)), folder, command=program.command) as fleet:
        with Lines(port) as client:
            assert client.ask(b"before\n") == [b"before"]
        pid = fleet.stats()["master"]["pid"]
        (folder / "echo.py").write_text("no Python")
        fleet.send_signal(signal.SIGUSR2)
        fleet.wait_log("upgrade.failed")
        assert fleet.log_contains("HP111")
        assert fleet.stats()["master"]["pid"] == pid
        with Lines(port) as client:
            assert client.ask(b"still\n") == [b"still"]
        with replacing_the_worker(port):
            (folder / "echo.py").write_text(LOUD)
            fleet.send_signal(signal.SIGUSR2)
            wait_for(lambda: fleet.stats()["master"]["pid"] != pid, "the new program serves", 30)
        with Lines(port) as client:
            assert client.ask(b"after\n") == [b"AFTER"]
