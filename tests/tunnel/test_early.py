"""Copies of hot keys are fetched anew before they end."""

from __future__ import annotations

from dataclasses import replace

import gevent.event
import pytest

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import Marked
from hyper_proxy.storage.keyvalue import Item, Put
from hyper_proxy.tunnel.early import Copy
from tests.conn_pool.conftest import turn, until
from tests.tunnel.conftest import KINDS, Build, Stack

OLD, NEW = Item(b"old", 0, None, 0), Item(b"new", 0, None, 0)


def kept_by_us(build: Build, kind: str) -> Stack:
    """A hot key whose copy this worker has put there, and that has another value below."""
    stack = build(kind)
    stack.memory.put_many([(b"a", Put(b"old")), (b"b", Put(b"cold"))])
    stack.read(b"nothing")
    stack.levels.watch([b"a"])
    stack.fill(b"a", b"b")
    until(lambda: early(stack)[b"a"], "it is remembered")
    assert set(early(stack)) == {b"a"}
    stack.memory.put_many([(b"a", Put(b"new"))])  # around the proxy
    stack.memory.asked.clear()
    return stack


def early(stack: Stack) -> dict[bytes, Copy | None]:
    return stack.levels.below[0].early.copies


def let_it_be_due(stack: Stack) -> None:
    copy = early(stack)[b"a"]
    assert copy is not None
    early(stack)[b"a"] = replace(copy, ends_at=0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_that_ends_soon_is_replaced(build: Build, kind: str) -> None:
    stack = kept_by_us(build, kind)
    stack.levels.watch([b"a"])
    assert stack.memory.asked == []  # it has yet long to live
    let_it_be_due(stack)
    stack.levels.watch([b"a"])
    stack.levels.watch([b"a"])
    until(lambda: stack.kept(b"a") == NEW, "the new value is there")
    assert stack.memory.asked == [b"a"]
    until(lambda: early(stack)[b"a"], "the new copy is remembered")


def test_readers_have_the_old_copy_meanwhile(build: Build) -> None:
    stack = kept_by_us(build, "redis")
    let_it_be_due(stack)
    opened = gevent.event.Event()
    stack.memory.pause = lambda: opened.wait(10)
    stack.levels.watch([b"a"])
    until(lambda: stack.memory.asked == [b"a"], "it is asked below")
    assert stack.read(b"a") == [b"old"]
    opened.set()
    until(lambda: stack.kept(b"a") == NEW, "the new value is there")


@pytest.mark.parametrize("kind", KINDS)
def test_a_write_that_comes_between_has_the_last_word(build: Build, kind: str) -> None:
    stack = kept_by_us(build, kind)
    let_it_be_due(stack)
    reading, go_on = gevent.event.Event(), gevent.event.Event()

    def pause() -> None:
        if reading.is_set():
            go_on.wait(10)
        reading.set()

    stack.memory.pause = pause
    stack.levels.watch([b"a"])
    assert reading.wait(10)
    stack.memory.pause = lambda: None
    stack.levels.put_many([(b"a", Put(b"newest"))])
    go_on.set()
    turn(0.1)  # for what would replace it
    assert early(stack)[b"a"] is None
    assert isinstance(stack.kept(b"a"), Marked)
    assert stack.read(b"a") == [b"newest"]


def test_a_key_that_is_hot_no_more_is_let_go(build: Build) -> None:
    stack = kept_by_us(build, "redis")
    let_it_be_due(stack)
    stack.levels.watch([b"c"])
    assert set(early(stack)) == {b"c"}
    assert stack.kept(b"a") == OLD and stack.memory.asked == []


def test_a_failure_below_leaves_the_copy(build: Build) -> None:
    stack = kept_by_us(build, "redis")
    let_it_be_due(stack)

    def fail() -> None:
        raise BackendError("user", "memory", "timeout", "no answer")

    stack.memory.pause = fail
    stack.levels.watch([b"a"])
    until(lambda: stack.memory.asked == [b"a"], "it is asked below")
    assert stack.kept(b"a") == OLD
