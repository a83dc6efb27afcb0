"""A share of what scripts/fuzz does a million times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.fuzz import TARGETS, Fuzzer

SHARE = 4000
FIRST = 10_000_000  # not the cases that the script begins with


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_streams_mean_the_same_compiled_and_plain_whole_and_cut(target: str) -> None:
    fuzzer = Fuzzer(target)
    for case in range(FIRST, FIRST + SHARE):
        fuzzer.run(case)
    assert len(fuzzer.found) >= 2  # neither nonsense only nor valid messages only


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_bytes_mean_the_same_compiled_and_plain_whole_and_cut(target: str, data: st.DataObject) -> None:
    fuzzer = Fuzzer(target)
    messages = st.one_of(st.binary(min_size=1, max_size=40), st.sampled_from(fuzzer.target.messages))
    pieces = data.draw(st.lists(messages, min_size=1, max_size=8))
    find = fuzzer.target.find
    whole, parted = find(fuzzer.built, [b"".join(pieces)]), find(fuzzer.built, pieces)
    assert find(fuzzer.plain, [b"".join(pieces)]) == whole
    assert find(fuzzer.plain, pieces) == parted
    assert fuzzer.same(whole, parted)
