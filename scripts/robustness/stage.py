"""What the proofs share: where they take place, clients that are at work before and after, and how they end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.kit.clients import Crowd
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

PATIENCE_S = 60.0
SHOWN = 10


@contextmanager
def stage() -> Iterator[tuple[Path, list[Running]]]:
    """A folder, and three redis-servers."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(redis_server()) for _ in range(3)]
        yield Path(stack.enter_context(tempfile.TemporaryDirectory())), nodes


def go_on(crowd: Crowd, steps: int) -> None:
    """Wait until the clients together have made so many more."""
    before = crowd.done
    wait_for(lambda: crowd.done > before + steps, "the clients are at work", PATIENCE_S)


def verdict(faults: Iterable[str]) -> int:
    """Show the first ones; the exit status."""
    all_faults = list(faults)
    for fault in all_faults[:SHOWN]:
        print(f"  {fault}")
    return 1 if all_faults else 0


def in_words(failures: Iterable[Exception]) -> Iterator[str]:
    """What clients met."""
    return (f"{type(failure).__name__}: {failure}" for failure in failures)
