"""What operators order of the running fleet, one function per verb. Each order is logged, with who gave it.

What is to last is kept in `Overrides`, a layer over the configuration that reloads do not touch, and sent to the
workers as a whole: who hears of it late, or is born late, hears of everything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from hyper_proxy.config.model import Instance
from supervisor.attendant import Answer, Verb
from supervisor.current import Current
from supervisor.errands import Errand, Errands
from supervisor.fleet import Fleet
from supervisor.overrides import by
from supervisor.reopening import Reopening, Told
from supervisor.slots import Slot
from supervisor.stop import Stopper

NODE_STATES = {"ready": "", "drain": "drained", "maintenance": "maintenance"}
"""What can be ordered of a node, and what it is then."""

ROOM_ORDERS = {
    "first": "the first room serves, as soon as it is well and equal, and stays",
    "second": "the second room serves, as soon as it is well and equal, and stays",
    "auto": "the proxy decides which room serves",
}
"""What can be ordered of the rooms of an instance, and what becomes of it."""

CHANGES = {"+1": ("more", "one worker more"), "-1": ("fewer", "one worker less, if there are more than one")}
"""What can be ordered of the number of workers, until the next reload."""

_WORDS = {"": "serves", "drained": "is drained", "maintenance": "is in maintenance"}

Report = dict[str, Any]


class Refused(Exception):
    """An order that can't be obeyed: the text says why."""


class Orders:
    """The orders; `verbs` is the table of them.

    `held` says why nothing that lasts may be changed now, as while another master takes over; `deeds` are what signals
    do, too: "more", "fewer", "upgrade"; `tell_sidecar` sends a message to it.
    """

    def __init__(
        self,
        current: Current,
        fleet: Fleet,
        stopper: Stopper,
        errands: Errands,
        status: Callable[[], Report],
        held: Callable[[], str],
        deeds: dict[str, Callable[[], None]],
        restart_worker: Callable[[int], None],
        reopening: Reopening,
        tell_sidecar: Callable[[Message], None],
    ) -> None:
        self._current = current
        self._layer = current.overrides
        self._fleet = fleet
        self._stopper = stopper
        self._errands = errands
        self._status = status
        self._held = held
        self._deeds = deeds
        self._restart_worker = restart_worker
        self._reopening = reopening
        self._tell_sidecar = tell_sidecar
        orders: dict[str, Callable[[Answer, Message], None]] = {
            "drain": self._drain,
            "undrain": self._undrain,
            "stop": self._stop,
            "node": self._node,
            "room": self._room,
            "log_level": self._log_level,
            "clear_overrides": self._clear,
            "disconnect": self._disconnect,
            "reopen_logs": self._reopen,
            "workers": self._workers,
            "restart_worker": self._restart,
            "upgrade": self._upgrade,
        }
        self.verbs: dict[str, Verb] = {name: self._checked(order) for name, order in orders.items()}

    def _checked(self, order: Callable[[Answer, Message], None]) -> Verb:
        def obey(answer: Answer, message: Message) -> None:
            details = {
                name: value for name, value in message.items() if name not in ("type", "id", "verb", "who") and value
            }
            log.info("operator.order", verb=message["verb"], who=message["who"], **details)
            try:
                order(answer, message)
            except Refused as error:
                log.warning("operator.refused", verb=message["verb"], who=message["who"], **details, error=error)
                self._not_done(answer, str(error))

        return obey

    def _done(self, answer: Answer, summary: str, **more: object) -> None:
        answer(self._state() | {"ok": True, "summary": summary, **more})

    def _not_done(self, answer: Answer, error: str, **more: object) -> None:
        answer(self._state() | {"ok": False, "error": error, **more})

    def _state(self) -> Report:
        status = self._status()
        return {name: status[name] for name in ("fleet", "master", "overrides")}

    # --- the whole proxy

    def _drain(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        self._layer.drained = self._layer.drained or by(message["who"])
        self._done(answer, "drained: /health/ready says 503; clients are served as before")

    def _undrain(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        self._layer.drained = None
        self._done(answer, "not drained: /health/ready says what there is to say")

    def _stop(self, answer: Answer, message: Message) -> None:
        if message["fast"]:
            self._stopper.fast()
        elif not self._stopper.mode:  # a second one is no hurry: who means it says so
            self._stopper.drain()
        self._done(answer, f"the fleet is {self._stopper.mode}")

    def _refuse_if_held(self) -> None:
        obstacle = "the fleet is stopping" if self._stopper.mode else self._held()
        if obstacle:
            raise Refused(obstacle)

    def _reopen(self, answer: Answer, message: Message) -> None:
        self._reopening.everyone("an order", self._teller(answer, "the log files are opened anew"))

    def _workers(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        if message["change"] not in CHANGES:
            raise Refused(f"there is no change '{message['change']}' of the workers: {', '.join(CHANGES)}")
        deed, words = CHANGES[message["change"]]
        self._deeds[deed]()
        self._done(answer, words)

    def _restart(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        number = message["worker"]
        if number is None or number >= len(self._fleet.slots):
            raise Refused(f"there is no worker {'' if number is None else number}".rstrip())
        self._restart_worker(number)
        self._done(answer, f"worker {number} is replaced: when its successor serves, it lets its clients finish")

    def _upgrade(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        self._deeds["upgrade"]()
        self._done(answer, "the program is started anew; when it serves, this master hands over to it")

    # --- what lasts

    def _node(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        if message["state"] not in NODE_STATES:
            raise Refused(f"there is no state '{message['state']}' for a node: {', '.join(NODE_STATES)}")
        key = self._find_node(message["instance"], message["node"])
        state = NODE_STATES[message["state"]]
        if state:
            self._layer.nodes[key] = state, by(message["who"])
        else:
            self._layer.nodes.pop(key, None)
        self._tell_workers(answer, f"node '{key[1]}' of instance '{key[0]}' {_WORDS[state]}")

    def _find_node(self, name: str, node: str) -> tuple[str, str]:
        """Instance and label of a node that is called by its alias or its address."""
        if (name, node) in self._layer.nodes:
            return name, node  # a reload may have taken it away; what was ordered can still be taken back
        instance = self.find_instance(name)
        servers = [server for level in instance.levels for server in level.everyone if not server.file]
        if not servers:
            raise Refused(f"instance '{name}' keeps its data in a file, which can't be taken out of service")
        for server in servers:
            if node in (server.label, server.address):
                return name, server.label
        labels = ", ".join(dict.fromkeys(server.label for server in servers))
        raise Refused(f"instance '{name}' has no node '{node}': {labels}")

    def _room(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        name, room = message["instance"], message["room"]
        if room not in ROOM_ORDERS:
            raise Refused(f"there is no room '{room}': {', '.join(ROOM_ORDERS)}")
        if room == "auto":
            if self._layer.rooms.pop(name, None) is None:
                self.find_instance(name)
        else:
            if not any(level.all_peers for level in self.find_instance(name).levels):
                raise Refused(f"instance '{name}' has one room")
            self._layer.rooms[name] = room, by(message["who"])
        self._tell_workers(answer, f"instance '{name}': {ROOM_ORDERS[room]}")

    def find_instance(self, name: str) -> Instance:
        """The instance of that name. Raises Refused, with the names that there are."""
        instance = self._current.config.instance(name)
        if instance is None:
            names = ", ".join(one.name for one in self._current.config.instances)
            raise Refused(f"there is no instance '{name}': {names}")
        return instance

    def _log_level(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        level = message["level"]
        if level not in ("", *log.LEVELS):
            raise Refused(f"there is no level '{level}': {', '.join(log.LEVELS)}")
        self._layer.log_level, self._layer.log_level_by = level, by(message["who"]) if level else None
        self._tell_workers(answer, f"the log level is {level or self._current.config.log.level}")

    def _clear(self, answer: Answer, message: Message) -> None:
        self._refuse_if_held()
        self._layer.clear()
        self._tell_workers(answer, "no override is left: the configuration holds")

    def _tell_workers(self, answer: Answer, summary: str) -> None:
        log.overrule(self._layer.log_level)
        self._tell_sidecar({"type": "log_level", "level": self._layer.log_level})

        told = self._teller(answer, summary)
        self._errands.ask(
            self._fleet.live(), "overrule", self._layer.for_workers(),
            lambda errand: told(errand.error, [slot.index for slot in errand.silent]),
        )  # fmt: skip

    def _teller(self, answer: Answer, summary: str) -> Told:
        """Answers when the workers have done it, or when one of them could not."""

        def told(error: str, silent: list[int]) -> None:
            late = f"; it reaches worker {', '.join(map(str, silent))} when that has time" if silent else ""
            if error:
                self._not_done(answer, error, silent=silent)
            else:
                self._done(answer, summary + late, silent=silent)

        return told

    # --- clients

    def _disconnect(self, answer: Answer, message: Message) -> None:
        address, worker = message["address"], message["worker"]
        if not address:
            raise Refused("whom? the address of a client, HOST:PORT, or the HOST of many")
        if address.startswith("unix") and worker is None:
            raise Refused("clients of unix sockets are numbered by each worker: name the worker, too")

        def told(errand: Errand) -> None:
            count = sum(data["closed"] for _, data in errand.said)
            self._done(answer, f"{count} client{'s' if count != 1 else ''} disconnected", closed=count)

        self._errands.ask(self.workers(worker), "disconnect", {"address": address}, told)

    def workers(self, number: int | None) -> list[Slot]:
        """The slots that have a worker: those of that number, or all for None. Raises Refused when there is none."""
        slots = [slot for slot in self._fleet.live() if number in (None, slot.index)]
        if not slots:
            raise Refused("no worker is alive" if number is None else f"there is no worker {number}")
        return slots
