"""Every kind of bad file: nothing changes, and all five places say so: ctl, the log, /stats, /metrics, the page."""

from __future__ import annotations

import html
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.supervisor.conftest import Connect, StandInFleet, StartStandIn, ask, ctl
from tests.supervisor.test_reload import last_reload, metric

REDIS = 'storage = "redis"'
SERVERS = 'servers = ["127.0.0.1:6379:1 a"]'


@dataclass(frozen=True, slots=True)
class Fault:
    """What is put in the place of what, and a part of what is said; `key` is what it is about, "" when unknown."""

    old: str
    new: str
    says: str
    key: str = ""


FAULTS = {
    "syntax": Fault(REDIS, "storage = [", "HP103"),
    "unknown key": Fault("[proxy]", "[proxy]\nworkrs = 2", "did you mean 'workers'", "proxy.workrs"),
    "bad value": Fault(REDIS, 'storage = "rediss"', "did you mean 'redis'", "instance[0].level[0].storage"),
    "wrong type": Fault(REDIS, "storage = 7", "storage", "instance[0].level[0].storage"),
    "backend that is no address": Fault(SERVERS, 'servers = ["a b c"]', "servers", "instance[0].level[0].servers[0]"),
    "port in use": Fault("[TAKEN]", "", "it is in use by another process", "instance[0].listen[1]"),
    "listener that is not found": Fault("[NOWHERE]", "", "cannot listen on", "instance[0].listen[1]"),
    "restart": Fault("[proxy]", '[proxy]\npidfile = "pid"', "needs a restart", "proxy.pidfile"),
}


@pytest.fixture
def taken() -> Iterator[str]:
    """An address on which somebody listens."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield f"127.0.0.1:{other.getsockname()[1]}"


def spoil(fleet: StandInFleet, fault: Fault, taken: str) -> str:
    """Writes the bad file; the result is the line that is wrong."""
    addresses: dict[str, Callable[[], str]] = {"[TAKEN]": lambda: taken, "[NOWHERE]": lambda: "192.0.2.1:6380"}
    address = addresses.get(fault.old)
    old = f'listen = ["127.0.0.1:{fleet.port}"]' if address else fault.old
    new = f'listen = ["127.0.0.1:{fleet.port}", "{address()}"]' if address else fault.new
    good = fleet.file.read_text()
    assert good.count(old) == 1
    fleet.write(good.replace(old, new))
    return new.splitlines()[-1]


@pytest.mark.parametrize("kind", FAULTS)
def test_a_bad_file_changes_nothing_and_is_told_everywhere(
    start_standin: StartStandIn, connect: Connect, taken: str, kind: str
) -> None:
    fault = FAULTS[kind]
    fleet = start_standin(workers=1)
    client = connect(fleet)
    served, config, pids = client.ask(), fleet.http("GET", "/config"), fleet.worker_pids()
    wrong = spoil(fleet, fault, taken)
    done = ctl(fleet, "reload")
    assert done.returncode == 1
    verdict = last_reload(fleet)
    line = fleet.file.read_text().splitlines()[verdict["line"] - 1]
    place = f"{fleet.file}:{verdict['line']}: error: "
    assert line.strip() == wrong or kind == "syntax"  # which ends where the parser gives up
    assert (verdict["ok"], verdict["generation"], verdict["file"]) == (False, 1, str(fleet.file))
    assert verdict["key"] == fault.key
    assert fault.says in verdict["error"]
    assert place in verdict["error"]
    assert place in done.stderr
    assert fault.says in done.stderr
    assert "error reload.refused generation=1" in fleet.read_log()
    assert place in fleet.read_log()
    assert metric(fleet, "hyper_proxy_config_last_reload_successful") == 0
    assert place in html.unescape(fleet.http("GET", "/")[1].decode())
    assert client.ask() == served
    assert ask(fleet.port)[2:] == served[2:]
    assert fleet.http("GET", "/config") == config
    assert fleet.worker_pids() == pids
