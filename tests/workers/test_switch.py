"""A worker's part in a reload."""

from __future__ import annotations

import base64
import os
import pickle
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.load import embedded_default
from hyper_proxy.config.model import Config
from workers.switch import Switch


class Recorder:
    """An engine that writes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refuse = False

    def serve(self, instance: str, sock: socket.socket) -> None:
        self.calls.append(("serve", instance, sock.getsockname()))
        sock.close()

    def close(self, instance: str, address: str) -> None:
        self.calls.append(("close", instance, address))

    def adopt(self, slot: int, instance: str, sock: socket.socket) -> None:
        self.calls.append(("adopt", slot, instance))

    def give_back(self, slot: int) -> None:
        self.calls.append(("give_back", slot))

    def prepare(self, config: Config) -> object:
        if self.refuse:
            raise HyperProxyError("no")
        return "prepared"

    def discard(self, prepared: object) -> None:
        self.calls.append(("discard", prepared))

    def commit(self, prepared: object) -> None:
        self.calls.append(("commit", prepared))

    def drain(self, seconds: float) -> None:
        raise NotImplementedError

    def snapshot(self) -> dict[str, Any]:
        raise NotImplementedError


class Desk:
    """A switch, its engine, its answers, and a listener to offer."""

    def __init__(self, config: Config) -> None:
        self.engine = Recorder()
        self.answers: list[dict[str, Any]] = []
        self.committed: list[int] = []
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.config = base64.b64encode(pickle.dumps(config)).decode()
        self.fds: list[int] = []
        self.switch = Switch(self.engine, self.take, self.answers.append, lambda config, n: self.committed.append(n))

    def close(self) -> None:
        """Closes what is left open."""
        self.switch.abort({"type": "abort"})
        self.listener.close()

    def take(self) -> int:
        self.fds.append(self.listener.detach())
        return self.fds[-1]

    def offer(self, number: int, close: list[list[str]] | None = None) -> None:
        """One new listener, then the configuration."""
        self.switch.listener({"type": "listener", "id": number, "instance": "new", "address": "127.0.0.1:1"})
        self.switch.prepare({"id": number, "generation": 2, "config": self.config, "close": close or []})

    def offered_is_open(self) -> bool:
        """Is the listener that was offered still open?"""
        return os.path.exists(f"/proc/self/fd/{self.fds[-1]}")


@pytest.fixture
def desk(tmp_path: Any) -> Iterator[Desk]:
    fresh = Desk(embedded_default(str(tmp_path)))
    yield fresh
    fresh.close()


def test_commit_takes_all_into_force_in_one_go(desk: Desk) -> None:
    with socket.socket() as old:
        old.bind(("127.0.0.1", 0))
        port = old.getsockname()[1]
        desk.switch.serve("old", f"localhost:{port}", old)
    desk.engine.calls.clear()
    name = desk.listener.getsockname()
    desk.offer(1, [["old", f"localhost:{port}"]])
    assert desk.engine.calls == []
    desk.switch.commit({"id": 1})
    assert desk.engine.calls == [("close", "old", f"127.0.0.1:{port}"), ("commit", "prepared"), ("serve", "new", name)]
    assert desk.answers == [{"type": "prepared", "id": 1}, {"type": "committed", "id": 1, "generation": 2}]
    assert desk.committed == [2]


def test_a_refusal_says_why_and_leaves_nothing_behind(desk: Desk) -> None:
    desk.engine.refuse = True
    desk.offer(1)
    assert desk.answers == [{"type": "refused", "id": 1, "error": "no", "key": "", "why": "no"}]
    assert not desk.offered_is_open()
    desk.switch.commit({"id": 1})
    assert desk.engine.calls == []


def test_an_abort_closes_what_was_offered(desk: Desk) -> None:
    desk.offer(1)
    assert desk.offered_is_open()
    desk.switch.abort({"id": 1})
    assert not desk.offered_is_open()
    desk.switch.commit({"id": 1})
    assert desk.engine.calls == [("discard", "prepared")]


def test_a_commit_of_another_transaction_does_nothing(desk: Desk) -> None:
    desk.offer(2)
    desk.switch.commit({"id": 1})
    assert desk.engine.calls == []
