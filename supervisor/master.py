"""The master: puts the concerns together and runs their loop. It never serves a request, has one thread and no gevent.

signals ──► Master ──► Fleet (workers)       born, missed, replaced
timers  ──► Loop       Reloader              judge, prepare, commit
pipes   ──►            Stopper               drain, fast
                       Census                counters of the living and the dead
                       LogRoller             new log files for all
                       Attendant, Desk       the sidecar and what it may ask
                       Herald                what the service manager is told
                       Watch, Adoption       who hangs; who accepts for whom can't
                       Staffing              more workers, fewer, none
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import setproctitle

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from supervisor.adoption import Adoption
from supervisor.attendant import Attendant, EnterSidecar
from supervisor.census import Census
from supervisor.children import Children
from supervisor.current import Current
from supervisor.desk import Desk
from supervisor.errands import Errands
from supervisor.estate import Estate
from supervisor.events import Events
from supervisor.fleet import EnterWorker, Fleet
from supervisor.generations import Generations
from supervisor.heir import Heir
from supervisor.herald import Herald
from supervisor.inquiries import Inquiries
from supervisor.log_roll import LogRoller
from supervisor.loop import Loop
from supervisor.merging import Merging
from supervisor.notify import Notifier
from supervisor.orders import Orders
from supervisor.reload import Reloader
from supervisor.reopening import Reopening
from supervisor.signals import SignalInbox
from supervisor.staffing import Staffing
from supervisor.stop import Stopper
from supervisor.upgrade import UNDER_WAY, Upgrader
from supervisor.verdict import Verdict
from supervisor.watch import Watch

# HUPs that come within so long share a reload: nobody waits for their verdict.
STORM_S = 2.0

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_NO_WORKER = 3
EXIT_OS = 71  # sysexits.h: EX_OSERR


@dataclass(frozen=True, slots=True)
class Crew:
    """What the children run; given from outside, since the master knows neither workers nor web servers."""

    worker: EnterWorker
    sidecar: EnterSidecar


def give_up(text: str) -> None:
    """Says why the fleet does not start: to whoever started it, and in the log if that goes elsewhere."""
    sys.stderr.write(f"hyper-proxy: {text}\n")
    if log.sink().file.path:
        log.error("master.failed", error=text)


class Master:
    """One fleet, from the first fork to the last exit status."""

    def __init__(self, current: Current, crew: Crew, estate: Estate | None = None) -> None:
        self._current = current
        self._name = current.config.path or "embedded default"
        events = Events()
        log.watch(events.note)
        self._roller = LogRoller(lambda: current.config.log, lambda: self._reopening.children())
        self._inbox = SignalInbox()
        self._loop = loop = Loop()
        self._children = children = Children()
        self._fleet = fleet = Fleet(loop, children, current, crew.worker, self._shed)
        census = Census(loop, fleet)
        generations = Generations(loop, children, fleet)
        self._reloader = Reloader(loop, children, current, fleet, generations, self._shed)
        self._signalled = Merging(loop, STORM_S, self._reloader.request)
        self._stopper = Stopper(loop, children, current, fleet)
        self._herald = Herald(loop, Notifier(os.environ), current, fleet, self._reloader, self._stopper)
        self._heir = Heir(loop, estate, current, fleet, census, self._open, self._herald.start) if estate else None
        self._upgrader = Upgrader(
            loop, children, current, fleet, census, self._reloader, self._herald, self._retire_for_successor
        )
        desk = Desk(current, census, self._reloader, self._stopper, self._upgrader, events)
        self._adoption = Adoption(loop, current, fleet)
        staffing = Staffing(loop, current, fleet, generations, self._adoption, self._reloader)
        errands = Errands(loop, fleet)
        self._reopening = Reopening(fleet, errands, self._tell_sidecar)
        deeds = {"more": staffing.more, "fewer": staffing.fewer, "upgrade": self._upgrader.request}
        orders = Orders(
            current, fleet, self._stopper, errands, desk.status, lambda: self._reloader.held, deeds, staffing.restart,
            self._reopening, self._tell_sidecar,
        )  # fmt: skip
        desk.verbs.update(orders.verbs, **Inquiries(current, errands, orders, desk.identity()).verbs)
        self._attendant = Attendant(loop, children, current, crew.sidecar, self._shed, desk.verbs)
        self._reloader.on_admin = self._attendant.move
        self._reloader.on_verdict.append(self._tell_log_settings)
        self._watch = Watch(loop, current, fleet, self._attendant)
        self._actions: dict[str, Callable[[], None]] = {
            "reap": children.reap,
            "drain": self._stopper.drain,
            "stop": self._stopper.fast,
            "explain": self._stopper.explain,
            "more": staffing.more,
            "fewer": staffing.fewer,
            "stand_down": staffing.stand_down,
            "reopen_logs": self._reopen_logs,
            "reload": self._reload,
            "upgrade": self._upgrader.request,
        }

    def run(self) -> int:
        """Starts the fleet and turns the loop until it has ended."""
        if self._heir is not None:
            setproctitle.setproctitle(f"hyper-proxy: new master {self._name}")
            self._reloader.hold(UNDER_WAY)
        log.bind(role="master")
        self._inbox.install()
        self._loop.add(self._inbox.read_end, self._on_signals)
        self._children.reap()  # strangers that ended before anybody listened, in a container
        gc.freeze()  # Keeps the collector of the children away from the pages they share with the master.
        try:
            self._fleet.start()
            if self._heir is None:
                self._open()
        except OSError as error:
            self._give_up(f"cannot start a process: {error}")
            self._finish()
            return EXIT_OS
        self._watch.run()
        self._adoption.run()
        code = self._serve()
        self._finish()
        log.info("master.ended", code=code)
        return code

    def _open(self) -> None:
        """The workers serve, or are about to: all that the world sees begins. Raises OSError when the system refuses a
        process to a first master."""
        setproctitle.setproctitle(f"hyper-proxy: master {self._name}")
        if self._heir is None:
            self._attendant.start()
            self._herald.start()
        else:
            self._attendant.move()
            self._upgrader.note_success(self._heir.predecessor)
            self._reloader.hold("")
        self._announce()
        self._roller.run(self._loop)

    def _give_up(self, text: str) -> None:
        give_up(text)
        if self._heir is not None:
            self._heir.decline(text)
        self._stopper.fast()

    def _retire_for_successor(self) -> None:
        """Another master serves: this one ends when its clients have."""
        setproctitle.setproctitle(f"hyper-proxy: old master {self._name}")
        self._attendant.leave()
        self._roller.follow()
        self._stopper.drain()

    def _announce(self) -> None:
        """What runs, and where: without a file nobody has chosen it."""
        config = self._current.config
        files = [server.file for instance in config.instances for level in instance.levels for server in level.servers]
        what = {"file": config.path} if config.path else {"file": "embedded default", "data": os.path.dirname(files[0])}
        log.info("master.started", **what, generation=self._current.generation, workers=len(self._fleet.slots))
        for instance in config.instances:
            addresses = ",".join(listen.address for listen in instance.listen)
            log.info("instance.listening", instance=instance.name, protocol=instance.protocol, addresses=addresses)
        log.info("sidecar.listening", address=config.admin.address)

    def _serve(self) -> int:
        while not self._stopper.done:
            self._turn()
            error = "" if self._stopper.mode else self._start_failure()
            if error:
                self._give_up(f"no worker could start: {error}")
                return EXIT_NO_WORKER
        return EXIT_OK

    def _turn(self) -> None:
        self._loop.turn()
        self._upgrader.look()
        if self._heir is None or self._heir.owner:
            self._herald.look()

    def _start_failure(self) -> str:
        """The first worker's error when every worker of the first generation has failed, or any of a master that is to
        take another's place; else nothing."""
        if self._heir is not None and self._heir.failure:
            return self._heir.failure
        if self._fleet.serving:
            return ""
        slots = self._fleet.slots
        if all(slot.failures for slot in slots):
            return next(slot.boot_error for slot in slots)
        return ""

    def _finish(self) -> None:
        """Waits for the last children and closes what is left."""
        self._attendant.stop()
        while not self._stopper.done or self._attendant.pid:
            self._turn()
        while self._passes_on():
            self._turn()
        self._upgrader.farewell(self._turn)
        self._current.close()

    def _passes_on(self) -> bool:
        """Between a predecessor that still drains and a successor, which hears from here what is counted there."""
        between = self._heir is not None and self._heir.followed and self._upgrader.handed_over
        return between and self._stopper.mode != "stopping"

    def _on_signals(self, events: int) -> None:
        for row in self._inbox.take():
            self._actions[row.action]()

    def _reload(self) -> None:
        self._reopen_logs()
        self._signalled.request()

    def _reopen_logs(self) -> None:
        self._reopening.everyone(why="a signal")

    def _tell_sidecar(self, message: Message) -> None:
        self._attendant.send(message)

    def _tell_log_settings(self, result: Verdict) -> None:
        """Workers have them from the commit, the sidecar from here."""
        if result.ok:
            self._tell_sidecar({"type": "log_settings", "settings": asdict(self._current.config.log)})

    def _shed(self, keep: frozenset[socket.socket]) -> None:
        """In a fresh child: closes all that is the master's, except the sockets to keep."""
        log.watch(None)
        self._loop.close()
        self._inbox.close()
        self._fleet.close_in_child()
        self._attendant.close_in_child()
        self._reloader.close_in_child(keep)
        self._upgrader.close_in_child()
        if self._heir is not None:
            self._heir.close_in_child(keep)
        self._current.close_in_child(keep)
