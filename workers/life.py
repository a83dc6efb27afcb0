"""A worker's life, from the fork to the last counter.

    hello ──► build the engine, serve the inherited sockets ──► ready ──► messages of the master ──► drain ──► gone

A worker that is held serves those sockets when it is told to, and is ready before that.

Greenlets: one reads the pipe, one writes it, one writes the log, one beats; if any of them fails, the worker ends and
the master starts another. The engine's greenlets serve the clients.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import gevent
import setproctitle
from gevent.event import AsyncResult

from hyper_proxy.common import log
from hyper_proxy.common.birth import Birth
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.frames import Message
from hyper_proxy.config.model import Config
from workers.actions import Actions
from workers.fault import in_words, unforeseen
from workers.heartbeat import Heartbeat
from workers.log_writer import QueueSink
from workers.pipe import MasterPipe
from workers.port import BuildEngine, EnginePort, adopt
from workers.scheduling import schedule
from workers.switch import Switch

EXIT_OK = 0
EXIT_FAILED = 1
# For the last words to the master and to the log.
FAREWELL_S = 0.5


class Life:
    """One worker process."""

    def __init__(self, birth: Birth, config: Config) -> None:
        self._birth = birth
        self._config = config
        self._generation = birth.generation
        self._pipe = MasterPipe(birth.pipe_fd)
        self._sink = QueueSink(log.sink().file)
        self._end: AsyncResult[int] = AsyncResult()
        self._draining = False

    def run(self, build: BuildEngine) -> int:
        """Lives; returns the exit code."""
        faulthandler.enable()  # the master ends a worker that hangs with ABRT
        faulthandler.register(signal.SIGQUIT, chain=False)
        log.configure(self._config.log.level, self._sink, self._config.log.format)
        schedule(self._config.scheduling)
        self._show_state("starting")
        self._spawn(self._sink.write_all)
        self._spawn(self._pipe.write_all)
        self._pipe.send({"type": "hello", "slot": self._birth.slot, "pid": os.getpid(), "generation": self._generation})
        booted = self._boot(build)
        if booted is None:
            return EXIT_FAILED
        engine, switch = booted
        self._serve(engine, switch)
        code = self._end.get()
        self._show_state("ending")
        self._pipe.send({"type": "gone", "data": _count(engine)})
        self._pipe.flush(FAREWELL_S)
        self._sink.flush(FAREWELL_S)
        return int(code)

    def _boot(self, build: BuildEngine) -> tuple[EnginePort, Switch] | None:
        """Builds the engine and serves. When that fails the master is told why and says it; an error that nobody
        foresaw ends the process with its traceback."""
        try:
            engine = build(self._config, self._birth.slot)
            switch = Switch(engine, self._pipe.take_fd, self._pipe.send, self._committed)
            self._actions = Actions(engine, lambda: self._sink.reopen().get(), self._pipe.send)
            self._actions.overrule(self._birth.overrides)
            if not self._birth.held:
                self._accept(switch)
        except (HyperProxyError, OSError) as error:
            self._tell_failure(in_words(error, self._config))
            return None
        except BaseException as error:
            self._tell_failure(unforeseen(error))
            raise
        return engine, switch

    def _accept(self, switch: Switch) -> None:
        """Serves the sockets that this worker was born with."""
        for listener in self._birth.listeners:
            switch.serve(listener.instance, listener.address, adopt(listener.fd))

    def _tell_failure(self, error: str) -> None:
        self._pipe.send({"type": "failed", "error": error})
        self._pipe.flush(FAREWELL_S)

    def _serve(self, engine: EnginePort, switch: Switch) -> None:
        routes: dict[str, Callable[[Message], None]] = {
            "serve": lambda message: self._accept(switch),
            "snapshot": lambda message: self._push(engine, message["id"]),
            "adopt": lambda message: engine.adopt(message["slot"], message["instance"], adopt(self._pipe.take_fd())),
            "give_back": lambda message: engine.give_back(message["slot"]),
            "listener": switch.listener,
            "prepare": switch.prepare,
            "commit": switch.commit,
            "abort": switch.abort,
            "drain": lambda message: self._drain(engine, message["seconds"]),
            "command": self._actions.command,
        }
        self._spawn(Heartbeat(self._birth.cell, lambda: self._push(engine, 0)).run)
        self._spawn(lambda: self._listen(routes))
        addresses = [listener.address for listener in self._birth.listeners]
        self._pipe.send({"type": "ready", "generation": self._generation, "listening": addresses})
        self._show_state("ready")

    def _listen(self, routes: dict[str, Callable[[Message], None]]) -> None:
        self._pipe.read_all(lambda message: routes[message["type"]](message))
        self._finish(EXIT_FAILED)  # The master is gone.

    def _push(self, engine: EnginePort, number: int) -> None:
        self._pipe.send({"type": "snapshot", "id": number, "data": _count(engine)})

    def _committed(self, config: Config, generation: int) -> None:
        self._config, self._generation = config, generation
        log.set_level(config.log.level)
        log.set_form(config.log.format)
        schedule(config.scheduling)
        self._birth.cell.put("generation", generation)
        if config.log.file != self._sink.path:
            self._sink.move_to(config.log.file)
        self._show_state("ready")

    def _drain(self, engine: EnginePort, seconds: float) -> None:
        """A later call with less time ends the worker sooner: whichever drain is done first decides."""
        self._draining = True
        self._show_state("draining")

        def drain() -> None:
            engine.drain(seconds)
            self._finish(EXIT_OK)

        self._spawn(drain)

    def _show_state(self, state: str) -> None:
        state = "draining" if self._draining and state == "ready" else state
        setproctitle.setproctitle(f"hyper-proxy: worker {self._birth.slot} gen {self._generation} {state}")
        log.bind(slot=self._birth.slot, pid=os.getpid(), generation=self._generation)

    def _spawn(self, run: Callable[[], None]) -> None:
        """A greenlet without which the worker must not go on: its failure ends it; gevent has printed the reason."""
        gevent.spawn(run).link_exception(lambda failed: self._finish(EXIT_FAILED))

    def _finish(self, code: int) -> None:
        if not self._end.ready():
            self._end.set(code)


def _count(engine: EnginePort) -> dict[str, Any]:
    """The engine's counters, and what the process has used."""
    snapshot = engine.snapshot()
    snapshot.setdefault("worker", {}).update(cpu_s=time.process_time(), log_lost=log.sink().lost)
    return snapshot
