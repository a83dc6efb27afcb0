"""Asks the master for the counters every few seconds, so that the page can say what has been, and since when."""

from __future__ import annotations

import time
from typing import Any

import gevent

from supervisor.sidecar.history import EVERY_S, History
from supervisor.sidecar.link import NoAnswer
from supervisor.sidecar.page import ASK_TIMEOUT_S, Asks
from supervisor.sidecar.report import stats_report
from supervisor.sidecar.samples import Sample, take
from supervisor.sidecar.turnstile import Crowded

# The second sample, with which rates begin, comes early.
FIRST_S = 1.0
# With thousands of servers a sample takes a while: rest so many times as long, and leave the core to others.
REST = 5


def sample_for_ever(link: Asks, history: History) -> None:
    """A greenlet's life. A master that does not answer leaves a hole in the plots."""
    pause_s = FIRST_S
    while True:
        begun_s = time.monotonic()
        try:
            answer = link.ask("stats", ASK_TIMEOUT_S)
        except (NoAnswer, Crowded):
            pass
        else:
            history.add(sample_of(answer, stats_report(answer)))
        gevent.sleep(max(pause_s, REST * (time.monotonic() - begun_s)))
        pause_s = EVERY_S


def sample_of(answer: dict[str, Any], report: dict[str, Any]) -> Sample:
    """Of the master's answer to "stats" and the document made of it."""
    return take(time.time(), report, answer["snapshots"])
