"""Many blocking clients at once, as old applications are: one thread and one connection each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType


class Crowd:
    """Runs `step(number of the client)` over and over in every client's thread, until stopped.

    `make_step(number)` is called in the client's thread and makes its connection. A step that raises is counted in
    `failures` with its exception and the client goes on; `done` counts the steps that did not.
    """

    def __init__(self, clients: int, make_step: Callable[[int], Callable[[], None]]) -> None:
        self.make_step = make_step
        self.counts = [0] * clients
        self.failures: list[Exception] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    @property
    def done(self) -> int:
        """Steps without failure, of all clients."""
        return sum(self.counts)

    def _run(self, number: int) -> None:
        step = self.make_step(number)
        while not self.stopping.is_set():
            try:
                step()
            except Exception as error:  # noqa: BLE001  whatever a client meets is a failed request: it is counted and shown
                self.failures.append(error)
            else:
                self.counts[number] += 1

    def stop(self) -> None:
        """Let every client finish its step; AssertionError when one hangs."""
        self.stopping.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a client hangs"

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
