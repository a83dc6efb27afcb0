"""What is in force: the committed configuration, its generation, and the listeners that belong to it."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass, field

from hyper_proxy.config.model import Config
from supervisor.listeners import Listener, Wanted, wanted
from supervisor.overrides import Overrides
from supervisor.pidfile import PidFile


@dataclass(frozen=True, slots=True)
class Past:
    """The generation before."""

    config: Config
    lines: dict[str, int]
    generation: int


@dataclass(slots=True)
class Current:
    """Changed at one place only: by a reload that commits.

    `digest` identifies the text of the file, "" for the embedded default; `listeners` are by address; `loaded_at` is in
    seconds since 1970; `lines` tells where in the file a key stands, by path ("log.file"); `past` is what a reload has
    replaced, None before the first one; `overrides` is what operators have ordered meanwhile; `shared`
    says that another master has the same listeners: to close them here must leave no trace.
    """

    config: Config
    digest: str
    slots: int
    listeners: dict[str, Listener]
    admin: Listener
    loaded_at: float
    pidfile: PidFile
    generation: int = 1
    lines: dict[str, int] = field(default_factory=dict)
    past: Past | None = None
    shared: bool = False
    overrides: Overrides = field(default_factory=Overrides)

    def begin(self, config: Config, digest: str, lines: dict[str, int], listeners: dict[str, Listener]) -> None:
        """The next generation comes into force."""
        self.past = Past(self.config, self.lines, self.generation)
        self.config, self.digest, self.lines, self.listeners = config, digest, lines, listeners
        self.generation += 1
        self.loaded_at = time.time()

    def of(self, slot: int) -> list[tuple[Wanted, socket.socket]]:
        """The listeners of one slot."""
        return [(wish, self.listeners[address].of(slot)) for address, wish in wanted(self.config).items()]

    def close_listeners(self) -> None:
        """Closes the clients' listeners for good; each worker still has its own descriptor and the queue behind it."""
        for listener in self.listeners.values():
            self._close(listener)

    def close(self) -> None:
        """Closes everything for good."""
        self.close_listeners()
        self._close(self.admin)
        if self.shared:
            self.pidfile.close()
        else:
            self.pidfile.remove()

    def _close(self, listener: Listener) -> None:
        if self.shared:
            listener.close_in_child(frozenset())
        else:
            listener.close()

    def close_in_child(self, keep: frozenset[socket.socket]) -> None:
        """Closes in a fresh child what it does not keep."""
        self.pidfile.close()
        for listener in (*self.listeners.values(), self.admin):
            listener.close_in_child(keep)
