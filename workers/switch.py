"""Prepare and commit: a new configuration is built beside the old one and takes its place in one step.

listener*  prepare  ──► prepared | refused ──► commit ──► committed
                                               abort
"""

from __future__ import annotations

import base64
import pickle
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.frames import Message
from hyper_proxy.config.model import Config, bound_address
from workers.fault import in_words, key_of, unforeseen
from workers.port import EnginePort, adopt


@dataclass(slots=True)
class _Offer:
    """What has arrived of a transaction: new listeners, then what was prepared, and what to close when it commits."""

    number: int
    listeners: list[tuple[str, str, socket.socket]] = field(default_factory=list)
    config: Config | None = None
    generation: int = 0
    prepared: object = None
    close: list[list[str]] = field(default_factory=list)


class Switch:
    """Takes part in the master's transactions. `answer` sends to the master, `committed` tells the worker."""

    def __init__(
        self,
        engine: EnginePort,
        take_fd: Callable[[], int],
        answer: Callable[[dict[str, Any]], object],
        committed: Callable[[Config, int], None],
    ) -> None:
        self._engine = engine
        self._take_fd = take_fd
        self._answer = answer
        self._committed = committed
        self._offer: _Offer | None = None
        self._bound: dict[tuple[str, str], str] = {}

    def serve(self, instance: str, address: str, sock: socket.socket) -> None:
        """Lets the engine accept on a listener of the configuration, whose address may be a name ("localhost:6380")."""
        self._bound[instance, address] = bound_address(sock)
        self._engine.serve(instance, sock)

    def listener(self, message: Message) -> None:
        """A new listening socket, to be served from the commit on."""
        sock = adopt(self._take_fd())
        self._of(message).listeners.append((message["instance"], message["address"], sock))

    def prepare(self, message: Message) -> None:
        """Builds the new configuration; answers whether that worked."""
        offer = self._of(message)
        # From the master, through a pipe that only it and this process hold.
        config: Config = pickle.loads(base64.b64decode(message["config"]))
        try:
            offer.prepared = self._engine.prepare(config)
        except HyperProxyError as error:
            self._refuse(offer.number, in_words(error, config), key_of(error, config), str(error))
            return
        except Exception as error:  # noqa: BLE001  this configuration must not serve, and the worker goes on as it was
            traceback.print_exc()
            self._refuse(offer.number, unforeseen(error))
            return
        offer.config, offer.generation, offer.close = config, message["generation"], message["close"]
        self._answer({"type": "prepared", "id": offer.number})

    def _refuse(self, number: int, error: str, key: str = "", why: str = "") -> None:
        self._forget()
        self._answer({"type": "refused", "id": number, "error": error, "key": key, "why": why})

    def commit(self, message: Message) -> None:
        """Takes the prepared configuration into force: no yield between its parts.

        What is closed is closed first: who stands in its queue came to the old configuration.
        """
        offer = self._offer
        if offer is None or offer.number != message["id"] or offer.config is None:
            return  # It was refused before; the master knows and replaces this worker.
        self._offer = None
        for instance, address in offer.close:
            self._engine.close(instance, self._bound.pop((instance, address)))
        self._engine.commit(offer.prepared)
        for instance, address, sock in offer.listeners:
            self.serve(instance, address, sock)
        self._committed(offer.config, offer.generation)
        self._answer({"type": "committed", "id": offer.number, "generation": offer.generation})

    def abort(self, message: Message) -> None:
        """Forgets what was prepared."""
        self._forget()

    def _of(self, message: Message) -> _Offer:
        if self._offer is None or self._offer.number != message["id"]:
            self._forget()
            self._offer = _Offer(message["id"])
        return self._offer

    def _forget(self) -> None:
        if self._offer is not None:
            for _, _, sock in self._offer.listeners:
                sock.close()
            if self._offer.config is not None:
                self._engine.discard(self._offer.prepared)
            self._offer = None
