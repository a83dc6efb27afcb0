"""How much memory a process may have, and when that is too little."""

from __future__ import annotations

import psutil
import pytest

from hyper_proxy.common.memory import LEAST_BYTES, Memory, machine_bytes, rss_bytes

GIB = 1 << 30


def test_workers_have_equal_parts_and_never_less_than_they_need() -> None:
    memory = Memory()
    memory.allow(4 * GIB, 4)
    assert memory.limit == GIB
    memory.allow(4 * GIB, 1000)
    assert memory.limit == LEAST_BYTES


def test_the_default_is_half_of_the_machine_or_its_container() -> None:
    memory = Memory()
    memory.allow(0, 1)
    assert memory.limit == max(LEAST_BYTES, machine_bytes() // 2)
    assert 0 < machine_bytes() <= psutil.virtual_memory().total


@pytest.mark.parametrize(("limit", "short"), [(0, False), (1, True), (1 << 60, False)])
def test_memory_is_short_above_the_limit(limit: int, short: bool) -> None:
    memory = Memory()
    memory.limit = limit
    assert memory.is_short() is short
    assert memory.used == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)
    assert rss_bytes() > 1 << 20
