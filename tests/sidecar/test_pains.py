"""What is called a pain, and that the worst stands first."""

from __future__ import annotations

from typing import Any

import pytest

from hyper_proxy.stats.state import BAD, WARNING
from supervisor.sidecar.pains import GROWING, pains
from supervisor.sidecar.samples import WORKER_COUNTERS


def worker(slot: int = 0, **more: Any) -> dict[str, Any]:
    row = {"slot": slot, "state": "ready", "uptime_s": 5000.0, "restarts": 0, "last_exit": "", "beat_age_s": 0.1}
    return row | {"loop_lag_s": 0.0, "connections": 10, "adopted_by": None, "grown": {}} | more


def node(**more: Any) -> dict[str, Any]:
    row = {"node": "a", "instance": "shop", "down": 0, "failing": False, "trouble": 0.0, "errors": {}}
    return row | {"queued": 0, "since": None, "p99_us": 900, "requests": 5.0, "seconds": 60.0} | more


def view(**more: Any) -> dict[str, Any]:
    well = {"at": 1e9, "state": {"word": "serving", "reasons": []}, "workers": [worker()], "nodes": [node()]}
    quiet = {"instances": [], "silent": [], "overrides": [], "imbalance": 1.0, "master": {"last_upgrade": None}}
    quiet["config"] = {"last_reload": {"ok": True}}
    return well | quiet | more


def instance(**more: Any) -> dict[str, Any]:
    row = {"instance": "shop", "failing": False, "trouble": 0.0, "errors": {}, "refused": 0.0, "since": None}
    return row | {"requests": 5.0} | more


def test_a_fleet_that_is_well_has_none() -> None:
    assert pains(view(instances=[instance(errors={"client": 9.0})])) == [], "what clients do wrong is no pain of ours"


@pytest.mark.parametrize(
    ("ill", "level", "text"),
    [
        ({"state": {"word": "not serving", "reasons": ["no worker is ready"]}}, BAD, "no worker is ready"),
        ({"nodes": [node(down=1, errors={"refused": 2.0})]}, BAD, "is down for 1 of 1 workers: 2/s refused"),
        ({"nodes": [node(failing=True, trouble=3.0, errors={"timeout": 3.0})]}, BAD, "fails: 3/s timeout"),
        ({"nodes": [node(down=1)], "instances": [instance(requests=0.0)]}, BAD, "is down for 1 of 1 workers"),
        ({"nodes": [node(down=1)], "instances": [instance()]}, WARNING, "of 1 workers; clients get no errors"),
        ({"nodes": [node(trouble=3.0, errors={"timeout": 3.0})]}, WARNING, "well again; it failed within"),
        ({"nodes": [node(p99_us=150_000)]}, WARNING, "is slow: one answer in a hundred takes 150 ms"),
        ({"nodes": [node(queued=5000)]}, WARNING, "5000 requests wait"),
        ({"instances": [instance(failing=True, trouble=1.0, errors={"reset": 1.0})]}, BAD, "get errors: 1/s reset"),
        ({"instances": [instance(trouble=1.0, errors={"reset": 1.0})]}, WARNING, "no errors any more"),
        ({"config": {"last_reload": {"ok": False, "generation": 3, "at": 1.0}}}, WARNING, "reload was refused"),
        ({"instances": [instance(refused=1.0)]}, BAD, "refuses clients"),
        ({"workers": [worker(state="waiting", last_exit="signal KILL")]}, BAD, "the last one ended: signal KILL"),
        ({"workers": [worker(state="quarantined")]}, BAD, "is quarantined"),
        ({"workers": [worker(state="booting")]}, WARNING, "is booting"),
        ({"workers": [worker(restarts=1, last_exit="signal SEGV", uptime_s=9.0)]}, WARNING, "ended: signal SEGV"),
        ({"workers": [worker(beat_age_s=5.0)]}, BAD, "has not said a word for 5 s"),
        ({"workers": [worker(loop_lag_s=0.5)]}, WARNING, "is late by 500 ms"),
        ({"workers": [worker(state="quarantined", adopted_by=1)]}, BAD, "worker 1 serves its clients"),
        ({"workers": [worker(grown={"accept_pauses": 4})]}, BAD, "no descriptor left and accepts nobody: 4 times"),
        ({"workers": [worker(grown={"log_lost": 12})]}, WARNING, "drops lines of the log"),
        ({"silent": [0]}, WARNING, "did not tell its counters"),
        ({"master": {"last_upgrade": {"ok": False, "error": "not ready", "at": 1.0}}}, WARNING, "upgrade failed"),
        ({"imbalance": 3.0}, WARNING, "3.0 times the connections"),
        ({"overrides": ["log level debug by order of ann"]}, WARNING, "by order of ann"),
    ],
)
def test_each_pain_is_told(ill: dict[str, Any], level: str, text: str) -> None:
    (pain,) = pains(view(**ill))
    assert pain.level == level
    assert text in pain.text


def test_every_counter_that_hurts_is_one_of_the_table() -> None:
    assert GROWING.keys() <= set(WORKER_COUNTERS)


def test_a_slow_answer_among_few_says_nothing() -> None:
    assert pains(view(nodes=[node(p99_us=150_000, requests=0.1)])) == []


def test_an_old_death_is_history() -> None:
    assert pains(view(workers=[worker(restarts=3, last_exit="signal KILL")])) == []


def test_few_connections_are_uneven_by_chance() -> None:
    assert pains(view(workers=[worker(connections=2)], imbalance=3.0)) == []


def test_the_worst_stands_first() -> None:
    found = pains(view(workers=[worker(loop_lag_s=1.0)], instances=[instance(refused=1.0)]))
    assert [pain.level for pain in found] == [BAD, WARNING]


def test_a_drained_proxy_is_no_fault() -> None:
    state = {"word": "drained", "reasons": ["drained by ann"]}
    (pain,) = pains(view(state=state, overrides=["out of rotation by order of ann"]))
    assert pain.level == WARNING
