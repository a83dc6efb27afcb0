"""One after the other: who changes the same key in one worker waits for his turn instead of trying again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from gevent.lock import RLock


class Turns:
    """The keys that are being changed; one that nobody changes takes no memory."""

    def __init__(self) -> None:
        self._locks: dict[bytes, tuple[RLock, list[None]]] = {}  # with one None for each who has or wants it

    @contextmanager
    def of(self, keys: Sequence[bytes]) -> Iterator[None]:
        """All of these keys; taken in one order everywhere, so nobody waits for who waits for him."""
        with ExitStack() as stack:
            for key in sorted(set(keys)):
                stack.enter_context(self._of(key))
            yield

    @contextmanager
    def _of(self, key: bytes) -> Iterator[None]:
        lock, wanted = self._locks.setdefault(key, (RLock(), []))
        wanted.append(None)
        try:
            with lock:
                yield
        finally:
            wanted.pop()
            if not wanted:
                self._locks.pop(key)
