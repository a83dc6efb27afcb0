"""Question and answer over a lane, for storages that make requests of their own. The calling greenlet waits."""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy.common import witness
from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.conn_pool.lane import Lane


def ask(lane: Lane, raw: bytes, klass: int) -> bytes:
    """The answer to one request. Raises BackendError."""
    answer = ask_all(lane, [raw], klass)[0]
    if isinstance(answer, BackendError):
        raise answer
    return answer


def ask_all(lane: Lane, requests: Sequence[bytes], klass: int) -> list[bytes | BackendError]:
    """The answers to requests that are under way together, by position."""
    gather = Gather()
    for raw in requests:
        error = _room(lane, klass)
        if error is None:
            lane.submit(raw, klass, gather, gather.expect())
        else:
            gather.fail(gather.expect(), error)
    gather.wait()
    witness.note(lane.node.label)
    answers: list[bytes | BackendError] = gather.slots
    return answers


def _room(lane: Lane, klass: int) -> BackendError | None:
    """Wait while the server has too much to take."""
    while lane.is_full(klass):
        error = lane.wait_for_room(klass)
        if error is not None:
            return error
    return None
