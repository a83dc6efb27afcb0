"""What a worker is told when it is born: a small frozen record instead of the master's objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hyper_proxy.common.segment import Cell


@dataclass(frozen=True, slots=True)
class BornListener:
    """A listening socket that the worker inherits: bound, listening, non-blocking; `fd` is its descriptor."""

    instance: str
    address: str
    fd: int


@dataclass(frozen=True, slots=True)
class Birth:
    """Slot and generation of a new worker, its end of the pipe, its listeners and its cell of the shared segment.

    `held`: it gets ready, and serves when it is told to. `overrides` is what operators have ordered
    (supervisor/overrides.py).
    """

    slot: int
    generation: int
    pipe_fd: int
    listeners: tuple[BornListener, ...]
    cell: Cell
    held: bool = False
    overrides: dict[str, Any] = field(default_factory=dict)
