"""What is in force: the committed configuration, its generation, and the listeners that belong to it."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from hyper_proxy.config.model import Config
from supervisor.listeners import Listener, Wanted, wanted
from supervisor.pidfile import PidFile


@dataclass(slots=True)
class Current:
    """Changed at one place only: by a reload that commits.

    `digest` identifies the text of the file, "" for the embedded default; `listeners` are by address; `loaded_at` is in
    seconds since 1970.
    """

    config: Config
    digest: str
    slots: int
    listeners: dict[str, Listener]
    admin: Listener
    loaded_at: float
    pidfile: PidFile
    generation: int = 1

    def of(self, slot: int) -> list[tuple[Wanted, socket.socket]]:
        """The listeners of one slot."""
        return [(wish, self.listeners[address].of(slot)) for address, wish in wanted(self.config).items()]

    def close_listeners(self) -> None:
        """Closes the clients' listeners for good; each worker still has its own descriptor and the queue behind it."""
        for listener in self.listeners.values():
            listener.close()

    def close(self) -> None:
        """Closes everything for good."""
        self.close_listeners()
        self.admin.close()
        self.pidfile.remove()

    def close_in_child(self, keep: frozenset[socket.socket]) -> None:
        """Closes in a fresh child what it does not keep."""
        self.pidfile.close()
        for listener in (*self.listeners.values(), self.admin):
            listener.close_in_child(keep)
