"""Of many keys those that are asked for most, and those with the largest values, are found in little memory."""

from __future__ import annotations

import random
from types import ModuleType

from tests.kit.plain import both


@both("hyper_proxy.stats.hotkeys")
def test_hot_keys_are_found_among_many_and_no_cold_one_is_shown(module: ModuleType) -> None:
    hot = module.HotKeys()
    chance = random.Random(1)
    stream = [b"hot%d" % number for number in range(5) for _ in range(400)]
    stream += [b"cold%d" % number for number in range(20_000)]
    chance.shuffle(stream)
    for key in stream:
        hot.add(key, 100.0)
    top = hot.top(100.0)
    assert {key for key, _ in top[:5]} == {b"hot%d" % number for number in range(5)}
    assert all(count <= 40_000 for _, count in top), "never more than there were"
    assert len(top) <= module.SHOWN
    assert all(count < 1_000 for _, count in top[5:])


@both("hyper_proxy.stats.hotkeys")
def test_counts_fade_by_half_in_a_minute(module: ModuleType) -> None:
    hot = module.HotKeys()
    for _ in range(8):
        hot.add(b"old", 100.0)
    hot.fade(60)
    assert hot.top(100.0) == [(b"old", 400.0)]
    hot.fade(600)
    assert hot.top(100.0) == []


@both("hyper_proxy.stats.hotkeys")
def test_large_values_are_kept_with_their_present_size(module: ModuleType) -> None:
    big = module.BigKeys(0.0)
    for number in range(1000):
        big.add(b"key%d" % number, number)
    assert big.top() == [(b"key%d" % number, number) for number in range(999, 999 - module.SHOWN, -1)]
    big.add(b"key999", 5)
    assert big.top()[-1] == (b"key999", 5)
    big.forget(module.FORGET_S + 1)
    assert big.top() == []
    big.add(b"small", 1)
    assert big.top() == [(b"small", 1)]


@both("hyper_proxy.stats.hotkeys")
def test_very_long_keys_take_no_memory(module: ModuleType) -> None:
    hot, big = module.HotKeys(), module.BigKeys(0.0)
    hot.add(b"k" * 100_000, 1000.0)
    big.add(b"k" * 100_000, 1000)
    assert (hot.top(1.0), big.top()) == ([], [])
