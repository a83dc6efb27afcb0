"""What operators ask of the running fleet beyond its counters: clients, listeners, stacks. Nothing is changed by it."""

from __future__ import annotations

import socket
import struct
from typing import Any

from hyper_proxy.common.frames import Message
from supervisor.attendant import Answer, Verb
from supervisor.current import Current
from supervisor.errands import Errand, Errands
from supervisor.listeners import wanted
from supervisor.orders import Orders, Refused

# linux/tcp.h, struct tcp_info: 8 bytes of flags, four words, then tcpi_unacked and tcpi_sacked, which stand for the
# length of the queue and its limit where a socket listens.
_TCP_INFO = struct.Struct("=24xII")


class Inquiries:
    """The questions; `verbs` is the table of them."""

    def __init__(self, current: Current, errands: Errands, orders: Orders, identity: dict[str, Any]) -> None:
        self._current = current
        self._errands = errands
        self._orders = orders
        self._identity = identity
        self.verbs: dict[str, Verb] = {
            "overrides": lambda answer, message: answer(identity | {"overrides": current.overrides.report()}),
            "listeners": lambda answer, message: answer(identity | {"listeners": self._listeners()}),
            "clients": self._clients,
            "stack": self._stack,
        }

    def _listeners(self) -> list[dict[str, Any]]:
        """One row for each socket: who connects there, and how many wait to be accepted."""
        return [
            {
                "instance": wish.instance,
                "protocol": wish.protocol,
                "address": address,
                "worker": None if wish.listen.path else index,
            }
            | _backlog(sock)
            for address, wish in wanted(self._current.config).items()
            for index, sock in enumerate(self._current.listeners[address].sockets)
        ]

    def _clients(self, answer: Answer, message: Message) -> None:
        limit = message["limit"]

        def told(errand: Errand) -> None:
            rows = [
                {"worker": slot.index, "pid": slot.pid} | row for slot, data in errand.said for row in data["clients"]
            ]
            rows.sort(key=lambda row: -row["age_s"])
            total = sum(data["total"] for _, data in errand.said)
            silent = [slot.index for slot in errand.silent]
            answer(self._identity | {"total": total, "clients": rows[:limit], "silent": silent})

        try:
            if message["instance"]:
                self._orders.find_instance(message["instance"])
            slots = self._orders.workers(message["worker"])
        except Refused as error:
            answer(self._identity | {"ok": False, "error": str(error)})
            return
        self._errands.ask(slots, "clients", {"instance": message["instance"], "limit": limit}, told)

    def _stack(self, answer: Answer, message: Message) -> None:
        def told(errand: Errand) -> None:
            rows = [{"worker": slot.index, "pid": slot.pid} | data for slot, data in errand.said]
            answer(self._identity | {"stacks": rows, "silent": [slot.index for slot in errand.silent]})

        try:
            self._errands.ask(self._orders.workers(message["worker"]), "stack", {}, told)
        except Refused as error:
            answer(self._identity | {"ok": False, "error": str(error)})


def _backlog(sock: socket.socket) -> dict[str, int | None]:
    """`queued` connections of at most `backlog`; None for a unix socket, which does not tell."""
    if sock.family == socket.AF_UNIX:
        return {"queued": None, "backlog": None}
    queued, backlog = _TCP_INFO.unpack(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
    return {"queued": queued, "backlog": backlog}
