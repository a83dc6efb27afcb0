"""`hyper-proxy serve` with a tiny engine in its workers, whose faults the names of the instances ask for.

It answers a line with "SLOT PID DRAIN_TIMEOUT INSTANCE"; "wait PATH" answers only when the file exists, "log NUMBER"
logs LINES lines with that number first, "spin" never ends. While a file CONFIGURATION.fail-1 exists, worker 1 fails at
its birth; with CONFIGURATION.slow-1 that takes it SLOW_S seconds. An instance named

    fail-boot   lets every worker fail at its birth
    fail-boot-1 lets worker 1 fail so
    slow-boot   lets every worker take long to be born
    refuse-1    lets worker 1 refuse to prepare
    crash-1     lets worker 1 fail to prepare in a way that nobody foresaw
    die         lets every worker end while it prepares
    mute-1      lets worker 1 never answer a prepare
    stick-1     lets worker 1 hang in its commit
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hyper_proxy.cli import main, serve
from hyper_proxy.common import log
from hyper_proxy.common.birth import Birth
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Config, bound_address

COMMAND = [sys.executable, "-m", "tests.supervisor.standin"]
LINES = 20
SLOW_S = 2.5


def enter_worker(birth: Birth, config: Config) -> int:
    """Takes the place of the real one; first writes down which modules the master has."""
    Path(f"{config.path}.modules").write_text("\n".join(sys.modules))
    from gevent import monkey

    monkey.patch_all()

    from workers.life import Life

    return Life(birth, config).run(StandIn)


class StandIn:
    """An engine that knows its configuration and little else."""

    def __init__(self, config: Config, slot: int) -> None:
        self.config = config
        self.slot = slot
        self.listeners: dict[tuple[str, str], socket.socket] = {}
        self.adopted: dict[int, list[socket.socket]] = {}
        self.idle: set[socket.socket] = set()
        self.clients = 0
        self.accepted = 0
        self.draining = False
        if os.path.exists(f"{config.path}.slow-{slot}"):
            go_round(SLOW_S)
        told = self._told("fail-boot") or self._told(f"fail-boot-{slot}")
        if told or os.path.exists(f"{config.path}.fail-{slot}"):
            raise HyperProxyError("told to fail at boot")
        if self._told("slow-boot"):
            time.sleep(1.0)

    def _told(self, fault: str, config: Config | None = None) -> bool:
        return (config or self.config).instance(fault) is not None

    def serve(self, instance: str, sock: socket.socket) -> None:
        """Accepts for ever."""
        import gevent

        sock.setblocking(True)
        self.listeners[instance, bound_address(sock)] = sock
        gevent.spawn(self._accept, instance, sock)

    def _accept(self, instance: str, sock: socket.socket) -> None:

        while True:
            try:
                client, _ = sock.accept()
            except OSError:
                return
            self._welcome(instance, client)

    def _welcome(self, instance: str, client: socket.socket) -> None:
        import gevent

        client.setblocking(True)
        self.clients += 1
        self.accepted += 1
        gevent.spawn(self._talk, instance, client)

    def _empty(self, sock: socket.socket) -> None:
        """Nobody is left in the queue of a socket that is closed."""
        instance = next((key[0] for key, one in self.listeners.items() if one is sock), "a")
        sock.setblocking(False)
        try:
            while True:
                self._welcome(instance, sock.accept()[0])
        except BlockingIOError:
            sock.close()

    def adopt(self, slot: int, instance: str, sock: socket.socket) -> None:
        """Accepts there, too."""
        import gevent

        sock.setblocking(True)
        self.adopted.setdefault(slot, []).append(sock)
        gevent.spawn(self._accept, instance, sock)

    def give_back(self, slot: int) -> None:
        """Stops accepting there."""
        for sock in self.adopted.pop(slot, []):
            self._empty(sock)

    def _talk(self, instance: str, client: socket.socket) -> None:
        with client, client.makefile("rwb") as stream:
            asked = False
            while not self.draining or not asked:  # who was in the queue when the drain began has asked already
                self.idle.add(client)
                try:
                    line = stream.readline().split()
                except OSError:
                    break
                finally:
                    self.idle.discard(client)
                if not line:
                    break
                asked = True
                if line[0] == b"spin":
                    go_round_for_ever()
                self._wait(line)
                self._log(line)
                stream.write(f"{self.slot} {os.getpid()} {self.config.drain_timeout_s:g} {instance}\n".encode())
                stream.flush()
        self.clients -= 1

    def _wait(self, line: list[bytes]) -> None:
        import gevent

        if line[0] == b"wait":
            log.info("standin.waits", path=line[1].decode())
        while line[0] == b"wait" and not os.path.exists(line[1]):
            gevent.sleep(0.01)

    def _log(self, line: list[bytes]) -> None:
        for _ in range(LINES if line[0] == b"log" else 0):
            log.info("standin.said", number=int(line[1]), pad="x" * 100)

    def close(self, instance: str, address: str) -> None:
        """Stops accepting."""
        self._empty(self.listeners[instance, address])
        del self.listeners[instance, address]

    def prepare(self, config: Config) -> Config:
        """Refuses or hangs when told to."""
        import gevent

        if self._told(f"refuse-{self.slot}", config):
            raise HyperProxyError("told to refuse")
        if self._told(f"crash-{self.slot}", config):
            raise KeyError("told to crash")
        if self._told("die", config):
            os._exit(3)
        if self._told(f"mute-{self.slot}", config):
            gevent.sleep(60)
        return config

    def discard(self, prepared: Any) -> None:
        """There is nothing to give up."""

    def commit(self, prepared: Any) -> None:
        """Takes the configuration, or hangs when told to."""
        import gevent

        if self._told(f"stick-{self.slot}", prepared):
            gevent.sleep(60)
        self.config = prepared

    def drain(self, seconds: float) -> None:
        """Closes who is idle, waits for the others."""
        import gevent

        self.draining = True
        for sock in self.listeners.values():
            self._empty(sock)
        for slot in list(self.adopted):
            self.give_back(slot)
        for client in self.idle:
            client.shutdown(socket.SHUT_RD)
        with gevent.Timeout(seconds, False):
            while self.clients:
                gevent.sleep(0.01)

    def overrule(self, out: Mapping[str, Mapping[str, str]], pinned: Mapping[str, str]) -> None:
        """It has no servers."""

    def list_clients(self, instance: str, limit: int) -> dict[str, Any]:
        """It does not know them."""
        return {"total": self.clients, "clients": []}

    def disconnect(self, address: str) -> int:
        """Nor can it find one."""
        return 0

    def snapshot(self) -> dict[str, Any]:
        """In the form that hyper_proxy.stats merges."""
        return {"worker": {"connections": self.clients}, "instances": {"a": {"accepted": self.accepted}}}


def go_round_for_ever() -> None:
    """What a bug may do to a worker; its name is to be found in the worker's stack."""
    while True:
        pass


def go_round(seconds: float) -> None:
    """What a large configuration does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    serve.enter_worker = enter_worker
    sys.exit(main.main())
