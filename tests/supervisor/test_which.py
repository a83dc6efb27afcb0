"""Which fleet, which file, which process: whatever is said to the operator says it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import setproctitle

from hyper_proxy.cli.ctl_orders import ORDERS
from supervisor.spawn import fork_child
from tests.kit.fleet import ROOT
from tests.supervisor.conftest import StandInFleet, StartStandIn, ctl

CTL = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl"]


def of_file(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """ctl -c FILE."""
    return subprocess.run([*CTL, "-c", str(path), *words], cwd=ROOT, capture_output=True, text=True, timeout=20)


def said_by(fleet: StandInFleet) -> str:
    """The line that every verb writes to standard error."""
    return f"fleet of {fleet.file} (master {fleet.process.pid}), at 127.0.0.1:{fleet.admin_port}\n"


def test_ctl_finds_the_fleet_of_a_file_and_every_verb_says_whose_it_is(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    reading = [name.split() for name, order in ORDERS.items() if order.method == "GET"]
    for words in (["reload"], ["--json", "reload"], *reading):
        done = of_file(fleet.file, *words)
        assert (done.returncode, done.stderr) == (0, said_by(fleet)), words
    assert ctl(fleet, "show", "workers").stderr == said_by(fleet)


def test_every_answer_of_the_sidecar_says_whose_it_is(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    for path in sorted({order.path for order in ORDERS.values() if order.method == "GET"}):
        answer = json.loads(fleet.http("GET", path)[1])
        assert answer["fleet"] == {"file": str(fleet.file), "master": fleet.process.pid}, path


def test_ctl_of_a_file_asks_no_other_fleet(start_standin: StartStandIn, tmp_path: Path) -> None:
    fleet = start_standin(workers=1)
    other = tmp_path / "other.toml"
    other.write_text(fleet.file.read_text())
    done = of_file(other, "stop")
    assert done.returncode == 1
    assert f"the fleet of {fleet.file} (master {fleet.process.pid}) answers there" in done.stderr
    assert fleet.process.poll() is None


def test_ctl_of_a_file_needs_only_its_admin_address(start_standin: StartStandIn, tmp_path: Path) -> None:
    fleet = start_standin(workers=1)
    fleet.write(fleet.file.read_text().replace("workers", "wrokers"))
    assert "did you mean 'workers'" in of_file(fleet.file, "reload").stderr
    bad = tmp_path / "bad.toml"
    for text in ("[admin\n", "[admin]\nlisten = 3\n", "admin = 3\n", '[admin]\nlisten = "here"\n'):
        bad.write_text(text)
        done = of_file(bad, "reload")
        assert (done.returncode, "use --admin HOST:PORT" in done.stderr) == (1, True), text
    assert of_file(tmp_path / "missing.toml", "reload").returncode == 78


def test_warnings_are_told_to_who_reloads_and_logged_at_the_start(start_standin: StartStandIn, tmp_path: Path) -> None:
    trap = '  distribution = "ketama"\n  hash = "crc32"\n'
    log = tmp_path / "proxy.log"
    fleet = start_standin(workers=1, extra=f'{trap}[log]\nfile = "{log}"\n')
    assert "warning config.warning finding=" in log.read_text()
    assert "warning: HP401" in fleet.read_log()
    fleet.write(fleet.file.read_text().replace("drain_timeout_s = 5", "drain_timeout_s = 6"))
    assert "warning: HP401" in ctl(fleet, "reload").stdout


def test_a_reload_that_moves_keys_says_so(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    fleet.write(fleet.file.read_text().replace("127.0.0.1:6379:1 a", "127.0.0.1:6379:1 b"))
    text = "placement of keys changed in instance 'a': keys may now be looked for on other servers"
    assert text in ctl(fleet, "reload").stdout
    assert fleet.log_contains("warning config.placement_changed instance=a")


SERVER, SERVERS = '["127.0.0.1:6379:1 a"]', '["127.0.0.1:6379:1 a", "127.0.0.1:6378:1 b"]'
MOVE = f"""  route = {{ move = "new", of = "main", begins = BEGINS }}
    [[instance.level.pool]]
    name = "new"
    servers = {SERVERS}
"""
BEGUN, TO_COME = (MOVE.replace("BEGINS", f"{year}-01-31T02:00:00Z") for year in (2020, 2999))
CHANGED, ENDED = "placement of keys changed in instance 'a'", "the move of instance 'a' has ended"


@pytest.mark.parametrize(
    ("move", "servers", "said"),
    [
        (BEGUN, SERVERS, [ENDED]),
        (BEGUN, SERVER, [CHANGED]),
        (TO_COME, SERVER, []),
        (TO_COME, SERVERS, [CHANGED]),
    ],
)  # fmt: skip
def test_a_reload_that_ends_a_move_says_what_becomes_of_the_keys(
    start_standin: StartStandIn, move: str, servers: str, said: list[str]
) -> None:
    fleet = start_standin(workers=1, extra=move)
    text = fleet.file.read_text().replace(move, "")
    fleet.write(text.replace(SERVER, servers))
    verdict = ctl(fleet, "reload").stdout
    assert [one for one in (CHANGED, ENDED) if one in verdict] == said, verdict
    assert fleet.log_contains("warning config.placement_changed instance=a") == (CHANGED in said)


def test_the_start_says_what_runs_and_where(start_standin: StartStandIn, tmp_path: Path) -> None:
    fleet = start_standin(workers=1, listen=(f"unix:{tmp_path / 'a.sock'}",))
    assert fleet.log_contains(f"info master.started file={fleet.file} generation=1 workers=1")
    addresses = f"127.0.0.1:{fleet.port},unix:{tmp_path / 'a.sock'}"
    assert fleet.log_contains(f"info instance.listening instance=a protocol=redis addresses={addresses}")


def test_a_page_that_is_none_lists_those_there_are(start_standin: StartStandIn) -> None:
    fleet = start_standin(workers=1)
    for path in ("/nowhere", "/status"):
        status, body = fleet.http("GET", path)
        answer = json.loads(body)
        assert (status, answer["error"]) == (404, f"there is no {path}")
        assert "GET /stats" in answer["routes"]
    assert fleet.http("GET", "/health") == fleet.http("GET", "/health/ready")


def test_a_child_has_a_name_of_its_own_before_anything_else() -> None:
    name = "worker 7 gen 3 starting"

    def body() -> int:
        return int(setproctitle.getproctitle() != f"hyper-proxy: {name}")

    assert os.waitpid(fork_child(name, lambda: None, body), 0)[1] == 0
