"""What the supervisor says: verdicts, differences, exits, guards."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from hyper_proxy.common.errors import Finding
from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import Config
from supervisor import verdict
from supervisor.change import cold_changes, renewing_changes, summary
from supervisor.exits import Exit, explain_exit
from supervisor.signals import SIGNALS
from tests.supervisor.conftest import config_text


def config(**settings: Any) -> Config:
    """A configuration that was read."""
    return load_text(config_text(**{"port": 6380, **settings}), "hyper_proxy.toml")


def test_a_verdict_gives_place_and_key_of_the_first_error() -> None:
    findings = [
        Finding("a.toml", 2, "warning", "HP401", "instance[0].level[0].hash: a trap"),
        Finding("a.toml", 4, "error", "HP106", "instance[0].level[1].hash: 'ketma' is no hash"),
        Finding("a.toml", 9, "error", "HP104", "proxy.wrokers: unknown"),
    ]
    result = verdict.found(7, findings)
    assert (result.file, result.line, result.key, result.generation) == ("a.toml", 4, "instance[0].level[1].hash", 7)
    assert result.error.count("\n") == 1
    assert result.invalid
    assert not result.ok


def test_a_finding_about_the_file_as_a_whole_has_no_key() -> None:
    assert verdict.found(1, [Finding("a.toml", 3, "error", "HP103", "is not valid toml: x")]).key == ""


def test_the_summary_says_what_changed() -> None:
    assert summary(config(), config()) == "instances unchanged; listeners unchanged"
    assert summary(config(), config(instance="b")) == "1 instance added, 1 instance removed; listeners unchanged"
    assert "; 1 new worker in the place of the old ones" in summary(config(workers=2), config(workers=1))
    more = summary(config(), config(listen=("127.0.0.1:1", "127.0.0.1:2"), drain=9))
    assert more == "1 instance changed; 2 listeners added; drain_timeout_s changed"


def test_another_number_of_workers_takes_new_ones_only_if_it_differs() -> None:
    assert renewing_changes(config(workers=2), config(workers=2)) == []
    assert renewing_changes(config(workers=2), config(workers=3)) == ["proxy.workers"]
    assert cold_changes(config(workers=2), config(workers=3)) == []
    cores = config(workers=0).worker_count
    assert renewing_changes(config(workers=0), config(workers=cores)) == []


def with_proxy(**settings: str) -> Config:
    """A configuration with these settings of the fleet."""
    lines = "\n".join(f'{name} = "{value}"' for name, value in settings.items())
    return load_text(config_text(port=6380).replace("[proxy]", f"[proxy]\n{lines}"), "/hyper_proxy.toml")


def test_what_takes_a_restart_says_why_of_the_fleet_that_runs() -> None:
    plain, with_user = with_proxy(), with_proxy(user="nobody", pidfile="/a")
    assert dict(cold_changes(plain, with_user)) == {
        ("proxy", "pidfile"): '"" is in force, "/a" needs a restart: it is locked as a master starts',
        ("proxy", "user"): '"" is in force, "nobody" needs a restart: a fleet becomes that user as it starts',
    }
    assert dict(cold_changes(with_user, plain)) == {
        ("proxy", "pidfile"): '"/a" is in force, "" needs a restart: the lock of the running master is on that file',
        ("proxy", "user"): '"nobody" is in force, "" needs a restart: the master has given up the right to change it',
    }


@pytest.mark.parametrize(
    ("status", "words"),
    [(0, "exit code 0"), (3 << 8, "exit code 3"), (9, "signal KILL (possibly out of memory)"), (11, "signal SEGV")],
)
def test_exits_are_put_in_words(status: int, words: str) -> None:
    assert explain_exit(status) == words


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(1 << 8, "", 1.0), "exit code 1"),
        (Exit(1 << 8, "no such server\nmore", 1.0), "exit code 1: no such server"),
        (Exit(9, "it hangs", 1.0), "signal KILL: it hangs"),
        (Exit(9, "", 1.0), "signal KILL (possibly out of memory)"),
        (Exit(None, "Cannot allocate memory", 0.0), "fork: Cannot allocate memory"),
    ],
)
def test_the_end_of_a_worker_is_one_line(end: Exit, words: str) -> None:
    assert end.text == words


def test_every_signal_has_one_row() -> None:
    numbers = [row.number for row in SIGNALS]
    assert len(numbers) == len(set(numbers))
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD} <= set(numbers)
