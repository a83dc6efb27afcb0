"""Which requests are sampled: the right share, and not always the same ones of a client that repeats itself."""

from __future__ import annotations

from collections import Counter
from types import ModuleType

import pytest

from tests.kit.plain import both


def sampled(watch: object, batches: list[int]) -> tuple[list[int], int]:
    """The numbers of the sampled requests, and how many batches were to be logged."""
    numbers, logged, before = [], 0, 0
    for count in batches:
        watch.countdown -= count  # type: ignore[attr-defined]
        if watch.countdown <= 0:  # type: ignore[attr-defined]
            logged += watch.advance()  # type: ignore[attr-defined]
            while (index := watch.pick(count)) >= 0:  # type: ignore[attr-defined]
                numbers.append(before + index)
            watch.restart()  # type: ignore[attr-defined]
        before += count
    return numbers, logged


@pytest.mark.parametrize("count", [1, 7, 100, 300])
@both("hyper_proxy.stats.watch")
def test_one_request_in_a_hundred_is_sampled_of_whatever_batches(module: ModuleType, count: int) -> None:
    numbers, logged = sampled(module.Watch("user", None), [count] * (100_000 // count))
    assert len(numbers) == pytest.approx(1000, rel=0.1)
    assert len(set(numbers)) == len(numbers)
    assert logged == 0


@both("hyper_proxy.stats.watch")
def test_a_client_that_repeats_itself_is_not_in_step(module: ModuleType) -> None:
    numbers, _ = sampled(module.Watch("user", None), [1] * 200_000)
    places = Counter(number % 100 for number in numbers)
    assert len(places) > 95
    assert max(places.values()) < 60


@pytest.mark.parametrize("share", [1.0, 0.5, 0.01])
@both("hyper_proxy.stats.watch")
def test_the_configured_share_is_logged(module: ModuleType, share: float) -> None:
    watch = module.Watch("user", None)
    watch.configure(0, share)
    _, logged = sampled(watch, [1] * 50_000)
    assert logged == pytest.approx(50_000 * share, rel=0.15)
