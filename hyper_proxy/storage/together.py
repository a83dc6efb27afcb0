# cython: language_level=3, annotation_typing=False
"""Reads of one table that come in the same turn of the event loop are one statement.

The first of them waits until the turn is over, and asks for the keys of all. Nobody waits for a statement that is under
way, so a slow one holds up only who came with it. What the server says of one key (it can't be compared with the
column, it is too long) is not the others' fault: then each asks for himself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import gevent
from gevent.event import Event

from hyper_proxy.common.errors import BackendError, ClientError

T = TypeVar("T")

FEW = 16  # keys; who asks for more asks alone
MOST = 128  # keys, after which those who come are the next crowd
OF_A_KEY = ("value", "size")  # kinds of errors


class _Crowd(Generic[T]):
    """Who asks together. Without `found` and `error` each asks for himself. answered: None as long as it is one."""

    __slots__ = ("answered", "error", "found", "keys")

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = dict.fromkeys(keys)
        self.answered: Event | None = None
        self.found: dict[bytes, T] | None = None
        self.error: BackendError | None = None


class Together(Generic[T]):
    """read(keys): asks the server; what it finds, by key."""

    def __init__(self, read: Callable[[Sequence[bytes]], dict[bytes, T]]) -> None:
        self.read = read
        self.gathering: _Crowd[T] | None = None

    def get(self, keys: Sequence[bytes]) -> dict[bytes, T]:
        """What is found of these keys, and maybe of others. Raises what `read` raises."""
        if len(keys) > FEW:
            return self.read(keys)
        crowd = self.gathering
        if crowd is None or len(crowd.keys) > MOST:
            return self._lead(keys)
        crowd.keys.update(dict.fromkeys(keys))
        if crowd.answered is None:
            crowd.answered = Event()
        crowd.answered.wait()
        if crowd.error is not None:
            raise crowd.error
        return self.read(keys) if crowd.found is None else crowd.found

    def _lead(self, keys: Sequence[bytes]) -> dict[bytes, T]:
        crowd: _Crowd[T] = _Crowd(keys)
        self.gathering = crowd
        try:
            gevent.sleep(0)
            self._close(crowd)
            crowd.found = self.read(list(crowd.keys))
        except (BackendError, ClientError) as error:
            if crowd.answered is None:
                raise
            if isinstance(error, BackendError) and error.kind not in OF_A_KEY:
                crowd.error = error
                raise
        finally:
            self._close(crowd)
            if crowd.answered is not None:
                crowd.answered.set()
        return self.read(keys) if crowd.found is None else crowd.found

    def _close(self, crowd: _Crowd[T]) -> None:
        if self.gathering is crowd:
            self.gathering = None
