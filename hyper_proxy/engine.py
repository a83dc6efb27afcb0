"""One worker's data path, put together: fronts, storages, listeners. A reload exchanges all of it in one step."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import random
from time import monotonic
from typing import Any

import gevent

from hyper_proxy.common import log
from hyper_proxy.common.descriptors import RESERVE
from hyper_proxy.common.faults import FAULTS
from hyper_proxy.common.memory import MEMORY
from hyper_proxy.config.model import Config, Instance, bound_address
from hyper_proxy.config.overrule import overruled
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.prober import Prober
from hyper_proxy.entry.admission import Admission
from hyper_proxy.entry.janitor import Janitor
from hyper_proxy.entry.lingering import LINGERING
from hyper_proxy.entry.listener import Listener
from hyper_proxy.entry.pressure import Pressure
from hyper_proxy.entry.visitors import disconnect, list_clients
from hyper_proxy.front import Front, Snapshot
from hyper_proxy.plugins import load_plugins
from hyper_proxy.protocol.table import PROTOCOLS
from hyper_proxy.stack import begin, build_snapshot, inner, release
from hyper_proxy.stats.collect import collect
from hyper_proxy.stats.plugin_faults import REPORTS
from hyper_proxy.stats.slowlog import Journal
from hyper_proxy.stats.watch import KEYS_EVERY, Watch
from hyper_proxy.storage.sqlite import close_all
from hyper_proxy.tunnel import behind
from hyper_proxy.tunnel.early import LOOK_S
from hyper_proxy.tunnel.levels import Levels

# Idle clients are closed at random moments of this part of the drain, so that they do not all come back at once.
DRAIN_SPREAD = 0.8
DRAIN_STEP_S = 0.02
LEAST_DRAIN_S = 1.0  # for writes that were answered and are not below yet, also when the clients took all the time

OTHER_DESCRIPTORS = 16  # a log file that is opened anew, a name that is resolved, a file of /proc


@dataclass(frozen=True, slots=True)
class Prepared:
    """A configuration that is ready to serve."""

    config: Config
    snapshots: dict[str, Snapshot]


class Engine:
    """Builds everything, starts nothing: clients come with `serve`."""

    def __init__(self, config: Config, slot: int) -> None:
        self.slot = slot
        self.fronts: dict[str, Front] = {}
        self.journal = Journal(slot)
        log.watch(self.journal.note)
        self.listeners: dict[tuple[str, str], Listener] = {}
        self.adopted: dict[int, list[Listener]] = {}
        self.out: Mapping[str, Mapping[str, str]] = {}
        self.pinned: Mapping[str, str] = {}
        self.admission = Admission()
        FAULTS.watch()
        load_plugins(config.plugins)
        self.commit(self.prepare(config))
        self.pressure = Pressure(self.fronts, self.admission)
        gevent.spawn(Janitor().run, self.fronts)
        gevent.spawn(Prober(self._nodes).run)
        gevent.spawn(self.pressure.run)
        gevent.spawn(self._watch_hot)

    def serve(self, instance: str, sock: socket.socket) -> None:
        """Accept clients of an instance on a bound, listening, non-blocking socket: the engine's from now on."""
        address = bound_address(sock)
        self.listeners[instance, address] = Listener(self.fronts[instance], sock, address, self.admission)

    def close(self, instance: str, address: str) -> None:
        """Accept no more there; the clients that are connected stay."""
        listener = self.listeners.pop((instance, address))
        listener.close()
        listener.sock.close()

    def adopt(self, slot: int, instance: str, sock: socket.socket) -> None:
        """Accept clients on a socket of another slot as well, whose worker can't, until `give_back`."""
        listener = Listener(self.fronts[instance], sock, bound_address(sock), self.admission)
        self.adopted.setdefault(slot, []).append(listener)

    def give_back(self, slot: int) -> None:
        """Accept no more for that slot; the clients that came so stay."""
        for listener in self.adopted.pop(slot, []):
            listener.close()
            listener.sock.close()

    def prepare(self, config: Config) -> Prepared:
        """Build what a new configuration needs, beside what serves; unchanged nodes keep their connections.

        Raises HyperProxyError when it can't be built; then nothing has changed.
        """
        snapshots: dict[str, Snapshot] = {}
        try:
            for instance in config.instances:
                front = self.fronts.get(instance.name)
                bent = self._bent(instance)
                snapshots[instance.name] = build_snapshot(bent, front.snapshot if front else None)
        except Exception:
            self.discard(Prepared(config, snapshots))
            raise
        return Prepared(config, snapshots)

    def discard(self, prepared: Prepared) -> None:
        """Give up what was prepared and will not serve; what serves keeps what they share."""
        for name, snapshot in prepared.snapshots.items():
            release(snapshot, self.fronts[name].snapshot if name in self.fronts else None)

    def commit(self, prepared: Prepared) -> None:
        """From the next request on the new configuration serves."""
        RESERVE.keep(_descriptors(prepared.config))
        MEMORY.allow(prepared.config.max_memory, prepared.config.worker_count)
        self.journal.show_keys = REPORTS.show_keys = prepared.config.show_keys
        for name, snapshot in prepared.snapshots.items():
            front = self.fronts.get(name)
            begin(snapshot, front.snapshot if front else None)
            if front is None:
                protocol, watch = PROTOCOLS[snapshot.instance.protocol], Watch(name, self.journal)
                self.fronts[name] = Front(protocol, snapshot, self.slot, watch)
                continue
            old, front.snapshot = front.snapshot, snapshot
            front.protocol = PROTOCOLS[snapshot.instance.protocol]
            if not old.is_like(snapshot):
                front.hang_up()
            release(old, snapshot)
        for name in self.fronts.keys() - prepared.snapshots.keys():
            front = self.fronts.pop(name)
            front.remove()
            release(front.snapshot, None)
        for front in self.fronts.values():
            front.watch.configure(prepared.config.log.slow_ms, prepared.config.log.access_sample)
        self._obey()  # what was ordered since it was prepared

    def overrule(self, out: Mapping[str, Mapping[str, str]], pinned: Mapping[str, str]) -> None:
        """Take servers out of service, by instance and label (config/overrule.py); all others serve. pinned: the rooms
        that are to serve, by instance. Does not yield."""
        self.out, self.pinned = out, pinned
        self._obey()

    def _bent(self, instance: Instance) -> Instance:
        return overruled(instance, self.out.get(instance.name, {}), self.pinned.get(instance.name, ""))

    def _obey(self) -> None:
        for front in self.fronts.values():
            old = front.snapshot
            instance = self._bent(old.instance)
            if instance != old.instance:
                front.snapshot = build_snapshot(instance, old)
                begin(front.snapshot, old)
                release(old, front.snapshot)

    def _watch_hot(self) -> None:
        """Let the levels know which keys are hot, for ever."""
        while True:
            gevent.sleep(LOOK_S)
            for front in list(self.fronts.values()):
                storage = inner(front.snapshot.storage)
                if isinstance(storage, Levels):
                    storage.watch([key for key, _ in front.watch.hot.top(KEYS_EVERY)])

    def _nodes(self) -> Iterator[Node]:
        return (node for front in self.fronts.values() for node in front.snapshot.storage.nodes)

    def drain(self, seconds: float) -> None:
        """Accept no more, let requests finish, close clients between two requests; what is left then is cut.

        Copies in caches that could not be told of a write are old: as long as there is time, that is tried again. What
        was answered and waits to be written below is written.
        At last the embedded storages are closed: a stopped fleet leaves all data in their files.
        """
        for instance, address in list(self.listeners):
            self.close(instance, address)
        for slot in list(self.adopted):
            self.give_back(slot)
        gevent.sleep(0)  # those who were in the queue become clients
        clients = [client for front in self.fronts.values() for client in front.clients]
        began = monotonic()
        spread = seconds * DRAIN_SPREAD
        due = sorted(((began + random() * spread, client) for client in clients), key=lambda row: row[0])
        while (self.clients or self._owed or LINGERING.lacks) and monotonic() < began + seconds:
            while due and due[0][0] <= monotonic():
                due.pop(0)[1].leave()
            gevent.sleep(DRAIN_STEP_S)
        if owed := self._owed:
            log.error("write_back.marks_lost", keys=owed)
        for front in self.fronts.values():
            front.hang_up()
        behind.drain(max(LEAST_DRAIN_S, began + seconds - monotonic()))
        close_all()

    @property
    def _owed(self) -> int:
        storages = (inner(front.snapshot.storage) for front in self.fronts.values())
        return sum(storage.owed for storage in storages if isinstance(storage, Levels))

    @property
    def clients(self) -> int:
        """Connected clients."""
        return sum(len(front.clients) for front in self.fronts.values())

    def list_clients(self, instance: str, limit: int) -> dict[str, Any]:
        """Who is connected, the longest first, at most `limit` of them; of one instance, or of all if it is ""."""
        return list_clients({name: front for name, front in self.fronts.items() if instance in ("", name)}, limit)

    def disconnect(self, address: str) -> int:
        """End the connections of a client, "host:port", or of all from a host; the number of those that were there."""
        return disconnect(self.fronts.values(), address)

    def snapshot(self) -> dict[str, Any]:
        """All counters, as JSON (docs/statistics.md)."""
        worker = {
            "accept_pauses": self.admission.pauses,
            "memory_limit_bytes": MEMORY.limit,
            "memory_shortages": self.pressure.shortages,
            "replies_dropped": MEMORY.dropped,
            "faults": FAULTS.count,
        }
        return collect(self.fronts, self.journal, worker)


def _descriptors(config: Config) -> int:
    """What connections to servers need: twice, for those that a reload takes away end when they are answered."""
    levels = [level for instance in config.instances for level in instance.levels]
    return OTHER_DESCRIPTORS + 2 * sum(level.usual_connections for level in levels)
