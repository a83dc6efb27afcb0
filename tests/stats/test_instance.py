"""The counters of an instance; compiled and plain."""

from __future__ import annotations

from types import ModuleType

from tests.kit.plain import both


@both("hyper_proxy.stats.instance")
def test_notes_count_requests_and_their_times_by_class(module: ModuleType) -> None:
    stats = module.InstanceStats(("read", "write"))
    stats.note(0, 3, 100)
    stats.note(1, 1, 7)
    stats.error("timeout")
    stats.error("timeout")
    stats.bytes_in += 40
    snapshot = stats.snapshot()
    assert snapshot["requests"] == {"read": 3, "write": 1}
    assert snapshot["latency_us"]["read"]["sum_us"] == 300
    assert snapshot["latency_us"]["write"] == {"sum_us": 7, "cells": [[7, 1]]}
    assert snapshot["errors"] == {"timeout": 2}
    assert (snapshot["bytes_in"], snapshot["bytes_out"]) == (40, 0)
