"""One worker's data path without a fleet: the engine of a configuration, in a thread with an event loop of its own.

Faster to start than a fleet, and its fronts can be looked into.
"""

from __future__ import annotations

import socket
import threading
from types import TracebackType

import gevent
from gevent.event import Event

from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import Config
from hyper_proxy.engine import Engine

READY_S = 20.0


class Worker:
    """Serves every instance of the configuration on a free port: `ports[NAME]`. Their `listen` is not used."""

    def __init__(self, text: str) -> None:
        self.config: Config = load_text(text, "worker.toml")
        self.ports: dict[str, int] = {}
        self.failure: BaseException | None = None
        self.started = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.started.wait(READY_S), "the worker does not start"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        hub = gevent.get_hub()
        try:
            self.engine = Engine(self.config, 0)
            for instance in self.config.instances:
                sock = socket.create_server(("127.0.0.1", 0), backlog=128)
                sock.setblocking(False)
                self.ports[instance.name] = sock.getsockname()[1]
                self.engine.serve(instance.name, sock)
        except BaseException as error:  # noqa: BLE001  raised again where the worker is made
            self.failure = error
            self.started.set()
            return
        stopping = Event()
        self.stop_soon = lambda: hub.loop.run_callback_threadsafe(stopping.set)
        self.started.set()
        stopping.wait()
        self.engine.drain(0.0)
        hub.destroy(destroy_loop=True)

    def errors(self, instance: str) -> dict[str, int]:
        """What the instance has counted as errors, by kind."""
        return dict(self.engine.fronts[instance].stats.errors)

    def stop(self) -> None:
        """End its clients and its thread."""
        self.stop_soon()
        self.thread.join(READY_S)
        assert not self.thread.is_alive(), "the worker hangs"

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
