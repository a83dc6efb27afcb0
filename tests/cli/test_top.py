"""hyper-proxy top before a real fleet under traffic: once, as JSON, and in a terminal with keys."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from rich.console import Console

from hyper_proxy.cli.admin import Admin
from hyper_proxy.cli.live.columns import VIEWS
from hyper_proxy.cli.live.figures import Reading, figures
from hyper_proxy.cli.live.keys import press
from hyper_proxy.cli.live.screen import PLAIN_BARS, Choice, chosen, curve, draw
from hyper_proxy.cli.live.source import Source
from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.terminal import IN_THE_BACKGROUND, Terminal
from tests.kit.wait import wait_for

TOP = [sys.executable, "-m", "hyper_proxy.cli.main", "top"]
LEAVES_THE_SCREEN = "\x1b[?1049l"


class Watched:
    """A fleet of two workers with one instance "shop" on two redis-servers "a" and "b"."""

    def __init__(self, nodes: list[Running], folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        servers = ", ".join(f'"{node.address}:1 {name}"' for node, name in zip(nodes, "ab", strict=False))
        self.config = f"""[proxy]
workers = 2
drain_timeout_s = 0.2

[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{self.port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{servers}]
"""
        self.fleet = Fleet(self.config, folder)
        self.admin = f"127.0.0.1:{self.fleet.admin_port}"

    def come_back(self) -> None:
        """A new fleet at the old addresses."""
        text = self.fleet.file.read_text()
        self.fleet = Fleet(text, self.folder, ready=False)

    def terminal(self, *words: str, before: tuple[str, ...] = ()) -> Terminal:
        """`top` in a terminal; before: what starts it."""
        return Terminal([*before, *TOP, "--admin", self.admin, "--interval", "0.2", *words], ROOT, {})

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`top` without a terminal."""
        command = [*TOP, "--admin", self.admin, *words]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)


@pytest.fixture
def watched(redis_nodes: list[Running], tmp_path: Path) -> Iterator[Watched]:
    fresh = Watched(redis_nodes, tmp_path)
    yield fresh
    fresh.fleet.stop()


class Traffic:
    """A client that sends without a pause until it is stopped; `sent` counts."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent = 0
        self._going = True
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with redis.Redis(port=self.port) as client:
            while self._going:
                client.get(f"k{self.sent % 100}")
                self.sent += 1

    def __enter__(self) -> Traffic:
        return self

    def __exit__(self, *error: object) -> None:
        self._going = False
        self._thread.join()


def test_what_is_shown_is_exactly_what_was_sent(watched: Watched) -> None:
    source = Source(Admin(watched.admin))
    with redis.Redis(port=watched.port) as client:
        client.ping()
        wait_for(lambda: all("requests" in row for row in watched.fleet.stats()["workers"]), "both workers are counted")
        source.read_first()
        for number in range(300):
            client.get(f"k{number}")
        for _ in range(7):
            with suppress(redis.ResponseError):
                client.execute_command("NOSUCH")
        source.read()
        shown: Any = source.figures
        (shop,) = shown["instances"]
        assert (shop["instance"], shop["clients"], shop["requests"]) == ("shop", 1, 307)
        assert round(shop["requests_per_s"] * shown["seconds"]) == 307
        assert round(shown["totals"]["errors_per_s"] * shown["seconds"]) == 7
        assert {row["node"]: row["state"] for row in shown["nodes"]} == {"a": "up", "b": "up"}
        assert sum(row["requests"] for row in shown["nodes"]) == 300
        assert all(row["requests"] > 50 for row in shown["nodes"]), "both have keys"
        assert round(sum(row["requests_per_s"] for row in shown["workers"]) * shown["seconds"]) == 307
        assert 0 < shop["p50_us"] <= shop["p99_us"] == shown["totals"]["p99_us"]
        source.read()
        assert source.figures is not None
        assert source.figures["totals"]["requests"] == 0
        assert source.figures["totals"]["p99_us"] is None, "nothing was asked, so nothing took time"
        assert list(source.history.requests_per_s) == [shown["totals"]["requests_per_s"], 0]


def test_once_as_json_under_traffic(watched: Watched) -> None:
    with Traffic(watched.port) as traffic:
        done = watched.run("--once", "--json", "--interval", "2")
    shown = json.loads(done.stdout)
    assert (done.returncode, shown["schema"]) == (0, 1)
    assert 2 <= shown["seconds"] < 10
    asked = shown["totals"]["requests_per_s"] * shown["seconds"]
    assert 0 < asked <= traffic.sent
    assert [row["state"] for row in shown["workers"]] == ["ready", "ready"]
    assert shown["totals"]["requests"] == sum(row["requests"] for row in shown["instances"])
    assert abs(sum(row["requests"] for row in shown["nodes"]) - asked) <= 2, "all but one of them are GETs of a node"
    assert sum(row["cpu_percent"] for row in shown["workers"]) > 0


def test_once_as_text_needs_no_terminal(watched: Watched) -> None:
    with Traffic(watched.port):
        for words in (("--once",), ()):
            done = watched.run("--interval", "0.5", *words)
            assert (done.returncode, done.stderr) == (0, "")
            assert " SERVING " in done.stdout
            assert all(title in done.stdout for title in ("requests/s", "p99", "workers", "instances", "nodes", "shop"))
            assert "\x1b" not in done.stdout


def test_it_says_of_a_server_that_is_down_what_the_page_says(
    own: Callable[[Running], Running], redis_nodes: list[Running], tmp_path: Path
) -> None:
    mortal = own(redis_server())
    watched = Watched([mortal, redis_nodes[0]], tmp_path)

    def said() -> tuple[str, str]:
        shown = json.loads(watched.run("--json", "--interval", "0.2").stdout)
        return shown["state"], json.loads(watched.fleet.http("GET", "/?format=json")[1])["state"]["word"]

    try:
        assert said() == ("serving", "serving")
        mortal.kill()
        with redis.Redis(port=watched.port) as client:
            for number in range(20):
                with suppress(redis.ResponseError):
                    client.get(f"k{number}")
        wait_for(lambda: said() == ("serving, with errors",) * 2, "both say it", 15)
        assert " SERVING, WITH ERRORS " in watched.run("--interval", "0.2").stdout
    finally:
        watched.fleet.stop()


def test_without_a_fleet_it_says_so(tmp_path: Path) -> None:
    done = subprocess.run([*TOP, "--admin", f"127.0.0.1:{free_port()}"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, "no fleet answers" in done.stderr) == (1, "", True)


@pytest.mark.parametrize("text", ["often", "0", "1e9"])
def test_an_interval_that_is_none_is_refused_with_what_it_may_be(text: str) -> None:
    done = subprocess.run([*TOP, "--interval", text], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: argument --interval: '{text}' is not a number from 0.1 to 3600\n")


def test_keys_choose_what_is_shown_and_q_ends(watched: Watched) -> None:
    with Traffic(watched.port), watched.terminal() as terminal:
        terminal.wait("SERVING")
        terminal.wait("instances")
        terminal.press("n")
        terminal.wait("nodes")
        terminal.press("?")
        terminal.wait("this help")
        assert "restarts" not in terminal.text, "the workers are not shown"
        terminal.press("?w")
        terminal.wait("restarts")
        terminal.press("o")
        terminal.wait("slot v")
        terminal.press("o")
        terminal.wait("pid v")
        terminal.press("s")
        terminal.wait("slow requests")
        terminal.press("n/nothing-has-this")
        terminal.wait("/nothing-has-this_")
        terminal.press("\r")
        terminal.wait("only rows with 'nothing-has-this'")
        assert "shop" not in terminal.text.rpartition("nodes")[2], "no row has it"
        terminal.press("\x1b")
        terminal.wait("shop")
        terminal.press(" ")
        terminal.wait("standing still")
        terminal.press("q")
        assert terminal.end() == 0
        assert terminal.read_settings() == terminal.settings
        assert LEAVES_THE_SCREEN in terminal.drawn


ENDS = (lambda terminal: terminal.press("\x03"), lambda terminal: terminal.process.terminate())


@pytest.mark.parametrize("before", [(), IN_THE_BACKGROUND])
@pytest.mark.parametrize("end", ENDS)
def test_ctrl_c_and_term_end_it_as_q_does(
    watched: Watched, end: Callable[[Terminal], None], before: tuple[str, ...]
) -> None:
    with watched.terminal(before=before) as terminal:
        terminal.wait("SERVING")
        end(terminal)
        assert terminal.end() == 0
        assert terminal.read_settings() == terminal.settings
        assert LEAVES_THE_SCREEN in terminal.drawn
        assert "Traceback" not in terminal.drawn


def test_a_fleet_that_goes_away_is_shown_again_when_it_is_back(watched: Watched) -> None:
    with watched.terminal() as terminal:
        terminal.wait(f"(master {watched.fleet.process.pid})")
        assert watched.fleet.stop() == 0
        terminal.wait("trying again")
        watched.come_back()
        terminal.press("a")
        terminal.wait(f"(master {watched.fleet.process.pid})", 25)
        terminal.press("q")
        assert terminal.end() == 0


def reading(at: float, cells: list[list[int]], master: int = 1) -> Reading:
    """A fleet that has answered as many reads as the cells say."""
    count = sum(number for _, number in cells)
    instance = {"requests": {"read": count}, "errors": {}, "latency_us": {"read": {"cells": cells}}, "nodes": {}}
    report = {
        "fleet": {"file": "", "master": master}, "master": {"state": "running"}, "config": {}, "workers": [],
        "overrides": {"nodes": []}, "instances": {"a": instance},
    }  # fmt: skip
    return Reading(at, at, report)


def test_percentiles_are_of_what_happened_in_between() -> None:
    before, after = reading(0, [[300, 1000]]), reading(2, [[5, 99], [300, 1000]])
    shown = figures(before, after)
    assert (shown["totals"]["requests_per_s"], shown["totals"]["p99_us"]) == (49.5, 5), "the slow ones were before"


def test_a_worker_that_took_counts_along_makes_nothing_negative() -> None:
    shown = figures(reading(0, [[5, 100]]), reading(1, [[5, 90]]))
    assert (shown["totals"]["requests_per_s"], shown["totals"]["p50_us"]) == (0, None)


def test_what_a_reload_has_added_has_no_rate_yet() -> None:
    before, after = reading(0, []), reading(1, [[5, 10]])
    after.report["instances"]["new"] = after.report["instances"]["a"]
    old, new = figures(before, after)["instances"]
    assert (old["requests"], new["requests"], new["requests_per_s"]) == (10, None, None)


def test_another_fleet_does_not_go_on() -> None:
    assert reading(1, []).goes_on(reading(0, []))
    assert not reading(1, [], master=2).goes_on(reading(0, []))


def test_rows_are_ordered_and_filtered() -> None:
    view, choice = VIEWS["n"], Choice()
    rows = [
        {"instance": "x", "node": name, "state": state, "requests_per_s": rate}
        for name, state, rate in (("b", "up", 5.0), ("a", "down", 50.0), ("c", "up", None))
    ]

    def names() -> str:
        return "".join(row["node"] for row in chosen(view, rows, choice))

    assert names() == "abc", "the busiest first, who has no number last"
    press(choice, "o")
    press(choice, "o")
    assert names() == "abc", "by name"
    press(choice, "r")
    assert names() == "cba"
    for key in "/down":
        press(choice, key)
    assert names() == "a"
    press(choice, "\x7f")
    press(choice, "\r")
    assert (choice.text, choice.typing) == ("dow", False)
    press(choice, "\x1b")
    assert names() == "cba"
    assert not press(choice, "q")


def test_a_curve_is_as_high_as_its_share_of_the_top() -> None:
    assert curve([None, 0.0, 1.0, 4.0, 8.0]) == "  ▁▄█"
    assert curve([1.0, 8.0], PLAIN_BARS) == ".@"
    assert curve([]) == ""


def test_a_narrow_terminal_has_fewer_columns_and_whole_words(watched: Watched) -> None:
    source = Source(Admin(watched.admin))
    source.read_first()
    source.read()

    def lines(width: int) -> list[str]:
        console = Console(width=width, file=io.StringIO())
        console.print(draw(source, Choice(view="w"), width))
        return str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]

    wide, narrow = lines(160), lines(60)
    assert any(line.startswith("slot") and line.rstrip().endswith("last exit") for line in wide)
    assert any(line.startswith("slot") and "state" in line and "last exit" not in line for line in narrow)
    assert not any("\u2026" in line for line in narrow[-3:]), "nothing is cut off"
