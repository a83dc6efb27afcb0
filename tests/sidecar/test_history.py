"""What is remembered: differences of counters and histograms, bounded, with the beginning and the end of troubles."""

from __future__ import annotations

import time
from typing import Any

from hyper_proxy.stats.histogram import Histogram
from hyper_proxy.stats.merge import histogram
from supervisor.sidecar.history import CALM_S, EVERY_S, PLOTTED, POINTS, History
from supervisor.sidecar.samples import FLEET, Sample, between, take

NODE = ("node", "shop", "a")


def report(requests: int, times: list[int], nodes: int = 1, **errors: int) -> dict[str, Any]:
    latency = Histogram()
    for us in times:
        latency.add(us)
    node = {"requests": requests, "errors": errors, "latency_us": histogram([latency.snapshot()])}
    names = ["a", *(f"n{number}" for number in range(1, nodes))]
    instance = {"requests": {"read": requests}, "latency_us": {"read": histogram([latency.snapshot()])}}
    return {"instances": {"shop": {**instance, "nodes": dict.fromkeys(names, node)}}}


def sample(at: float, requests: int, times: list[int], **errors: int) -> Sample:
    return take(at, report(requests, times, **errors), [])


def test_rates_and_percentiles_are_those_of_the_time_between() -> None:
    old = sample(100, 1000, [10] * 1000)
    new = sample(110, 1100, [10] * 1000 + [5000] * 99 + [90_000])
    pace = between(old, new, NODE)
    assert (pace.seconds, pace.requests) == (10, 10)
    assert 5000 <= pace.p50_us <= 5000 * 17 / 16, "the thousand fast ones were before"
    assert pace.p99_us <= 5000 * 17 / 16
    assert between(old, new, FLEET).p50_us == pace.p50_us


def test_an_owner_that_begins_anew_did_what_it_has_counted_since() -> None:
    pace = between(sample(100, 1000, [10] * 1000), sample(110, 50, [20] * 50), NODE)
    assert (pace.requests, pace.p50_us) == (5, 20)


def test_errors_are_told_apart_from_those_of_clients() -> None:
    pace = between(sample(0, 1, [], timeout=2, client=3), sample(2, 2, [], timeout=4, client=13), NODE)
    assert pace.errors == {"timeout": 1, "client": 5}
    assert pace.trouble == 1


def test_processor_time_of_a_worker_is_a_share() -> None:
    def worker(at: float, cpu_s: float, lost: int) -> Sample:
        own = {"cpu_s": cpu_s, "log_lost": lost, "accept_pauses": 3, "fds": lost}
        return take(at, {"instances": {}}, [{"pid": 7, "slot": 0, "data": {"worker": own}}])

    pace = between(worker(10, 1.0, 5), worker(20, 6.0, 9), ("worker", "7"))
    assert (pace.cpu, pace.grown) == (0.5, {"log_lost": 4})


def test_memory_is_bounded() -> None:
    history = History()
    now = time.time() - 2 * POINTS * EVERY_S
    many = PLOTTED + 50
    for number in range(2 * POINTS):
        nodes = many if number < 3 else 1
        history.add(take(now + number * EVERY_S, report(number, [], nodes), []))
    assert len(history.points(FLEET)) <= POINTS
    assert history.points(NODE)[-1].requests == 1 / EVERY_S
    assert history.points(("node", "shop", f"n{many - 1}")) == [], "what is gone, or was one too many, has no plot"


def test_the_last_minute_is_compared_with_now() -> None:
    history = History()
    now = time.time()
    for ago in range(120, 0, -5):
        history.add(sample(now - ago, 1000 - ago, []))
    pace = history.pace(sample(now, 1000, []), FLEET)
    assert 55 <= pace.seconds <= 65
    assert round(pace.requests, 3) == 1


def test_a_trouble_has_a_beginning_and_an_end() -> None:
    history = History()
    start = time.time() - 100
    history.add(sample(start, 1, []))
    assert history.since(NODE) is None
    history.add(sample(start + 5, 2, [], refused=1))
    history.add(sample(start + 10, 3, [], refused=3))
    history.add(sample(start + 15, 4, [], refused=3))
    assert history.since(NODE) == start + 5, "nothing is told to have begun before it did"
    at = start + 10 + CALM_S
    history.add(sample(at, 5, [], refused=3))
    assert history.since(NODE) is None
    began, ended = history.events()
    assert (began["event"], began["at"], began["fields"]["node"]) == ("node.failing", start + 5, "a")
    assert began["fields"]["within_s"] == "5", "and when it may have begun"
    assert (ended["event"], ended["at"]) == ("node.recovered", start + 10)
