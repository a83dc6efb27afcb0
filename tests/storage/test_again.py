"""How long a change is tried that others are faster with."""

from __future__ import annotations

from time import monotonic

from hyper_proxy.storage.again import again


def test_it_is_tried_once_where_there_is_no_time() -> None:
    assert len(list(again(0))) == 1


def test_it_is_tried_as_long_as_there_is_time_and_not_at_every_moment() -> None:
    began = monotonic()
    attempts = len(list(again(0.2)))
    assert monotonic() - began >= 0.2
    assert 5 <= attempts <= 1000


def test_who_succeeds_does_not_wait() -> None:
    began = monotonic()
    assert next(again(60)) is None
    assert monotonic() - began < 1
