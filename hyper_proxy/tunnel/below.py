# cython: language_level=3, annotation_typing=False
"""What a cache does not have is asked of the levels below: once by all who want it at the same time, here or in other
workers of the machine, and what comes is added above, off the reply's path.

    in a worker   one question for all its greenlets (coalesce.py)
    in a machine  whoever asks holds a lease until the server above has taken the copy; who misses the key meanwhile,
                  and finds no question to share, waits for that, at most Pace.fill_s, and looks above again

A lease only says for whom it may be worth while to wait; nothing that a client is told depends on it. Who found a mark
has none and waits for nobody: no copy will stand in its place for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

import gevent

from hyper_proxy.common import parallel
from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.gather import Gather
from hyper_proxy.common.leases import LEASES, Grant
from hyper_proxy.storage.cache import Answer, Marked
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.tunnel.coalesce import Coalesce
from hyper_proxy.tunnel.early import Early
from hyper_proxy.tunnel.outcome import Told
from hyper_proxy.tunnel.tier import Part, Tier

LOOK_FIRST_S = 0.001  # the pause before somebody else's lease is looked at again; it grows ...
LOOK_LAST_S = 0.008  # ... up to this
EACH_ALONE = 8  # keys of one question that have a lease each

Ask = Callable[[Sequence[bytes]], list[Told]]
Found = dict[bytes, Told]


class Below:
    """What is below one tier. depth: its place among the levels; ask: reads the levels below."""

    def __init__(self, tier: Tier, depth: int, ask: Ask) -> None:
        self.tier = tier
        self.depth = depth
        self.ask = ask
        self.questions = Coalesce(tier.pace.fill_s, tier.counts)
        self.early = Early(tier, depth, ask)

    def read(self, shard: int, keys: Sequence[bytes], marked: Sequence[bool]) -> list[Told]:
        """The items of keys of one shard that the tier does not have; marked: says of each whether it has a mark."""
        with_mark = {key for key, is_marked in zip(keys, marked, strict=True) if is_marked} if True in marked else set()
        return self.questions.read(keys, marked, lambda wanted: self._read(shard, wanted, with_mark))

    def _read(self, shard: int, keys: Sequence[bytes], with_mark: set[bytes]) -> list[Told]:
        if not self.tier.keeps:
            return self.ask(keys)
        if len(keys) > EACH_ALONE:
            found = self._fetch(shard, dict.fromkeys(keys)) if with_mark else self._together(shard, keys)
            return [found[key] for key in keys]
        counts = self.tier.counts
        free: dict[bytes, int | None] = {}  # to be asked for, with the lease
        look: dict[bytes, int | None] = {}  # to be looked for above before: somebody was quicker
        taken: dict[bytes, int] = {}
        for key in keys:
            if key in with_mark:
                free[key] = None
                continue
            place = LEASES.place(self.tier.instance, self.depth, key)
            grant = LEASES.take(place)
            if grant is Grant.TAKEN:
                taken[key] = place
                counts.lease_waits += 1
            else:
                counts.leases += grant is Grant.MINE
                group = look if LEASES.was_filled(place) else free
                group[key] = place if grant is Grant.MINE else None
        if not look and not taken:
            found = self._fetch(shard, free)
            return [found[key] for key in keys]
        calls: list[Callable[[], Found]] = []
        if free:
            calls.append(lambda: self._fetch(shard, free))
        if look:
            calls.append(lambda: self._look(shard, look))
        if taken:
            calls.append(lambda: self._wait(shard, taken))
        found = {}
        for part in parallel.each(lambda call: call(), calls):
            found.update(part)
        return [found[key] for key in keys]

    def _together(self, shard: int, keys: Sequence[bytes]) -> Found:
        """One lease for all keys: who asks for just the same waits. A lock for each would cost more than answers."""
        place = LEASES.place(self.tier.instance, self.depth, *keys)
        grant = LEASES.take(place)
        if grant is Grant.TAKEN:
            self.tier.counts.lease_waits += len(keys)
            return self._wait(shard, dict.fromkeys(keys, place))
        leased: dict[bytes, int | None] = dict.fromkeys(keys)
        if grant is Grant.MINE:
            self.tier.counts.leases += 1
            leased[keys[-1]] = place  # copies are put above in this order: the last one's answer comes last
            if LEASES.was_filled(place):
                return self._look(shard, leased)
        return self._fetch(shard, leased)

    def _wait(self, shard: int, taken: dict[bytes, int]) -> Found:
        """Until whoever asks has what he wants, or seems not to get it; then look above."""
        until = monotonic() + self.tier.pace.fill_s
        places = list(taken.values())
        pause = LOOK_FIRST_S
        while places and monotonic() < until:
            if LEASES.is_taken(places[-1]):
                gevent.sleep(pause)
                pause = min(pause * 2, LOOK_LAST_S)
            else:
                places.pop()
        self.tier.counts.lease_timeouts += len(places)
        return self._look(shard, dict.fromkeys(taken))

    def _look(self, shard: int, leased: dict[bytes, int | None]) -> Found:
        """Above once more, and below for what is still not there."""
        keys = list(leased)
        try:
            answers: list[Answer] = self.tier.read(Part(shard, list(range(len(keys))), keys))
        except BackendError:  # counted by its node; a cache that is not there has nothing
            answers = [None] * len(keys)
        except BaseException:
            GiveBack(list(leased.values())).end()
            raise
        found: Found = {}
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, Item):
                found[key] = answer
            elif answer is not None and not isinstance(answer, Marked):
                found[key] = None
        for key in found:
            place = leased.pop(key)
            if place is not None:
                LEASES.give_back(place, filled=True)
        if leased:
            found.update(self._fetch(shard, leased))
        return found

    def _fetch(self, shard: int, leased: dict[bytes, int | None]) -> Found:
        """From below; what is found is kept above. The leases are given back when it is there, or can't be."""
        keys = list(leased)
        places = list(leased.values())
        told = GiveBack(places)
        began = monotonic()
        try:
            below = self.ask(keys)
        except BaseException:
            told.end()
            raise
        took_s = monotonic() - began
        if took_s <= self.tier.pace.fill_s:
            if self.early.copies:
                told.on_kept = lambda at, reply: self._note(keys[at], below[at], shard, took_s, reply)
            # Of most copies of a large request nobody wants to know whether they are kept.
            heard = places if told.on_kept is None else keys
            listeners = [told if one is not None else None for one in heard]
            self.tier.fill(shard, zip(keys, below, strict=True), began, listeners)
        else:
            told.end()
        return dict(zip(keys, below, strict=True))

    def _note(self, key: bytes, item: Told, shard: int, took_s: float, reply: bytes) -> None:
        if self.tier.cache.is_marked(reply):  # says a server of every mark, and of every copy, that it has stored
            self.early.note(key, item, shard, took_s)


class GiveBack(Gather):
    """Gives back leases, one by one, by the answers to the requests that put the copies above. Nobody waits for it.

    on_kept: is told the position and the answer.
    """

    def __init__(self, places: list[int | None]) -> None:
        # Not Gather's own: it has no slots, and nobody waits.
        self.places = places
        self.on_kept: Callable[[int, bytes], None] | None = None

    def deliver(self, position: int, reply: bytes | BackendError) -> None:
        place = self.places[position]
        if place is not None:
            self.places[position] = None
            LEASES.give_back(place, filled=isinstance(reply, bytes) and bool(reply))
        if self.on_kept is not None and isinstance(reply, bytes):
            self.on_kept(position, reply)

    def fail(self, position: int, error: BackendError) -> None:
        self.deliver(position, error)

    def end(self) -> None:
        """There is nothing to be put above."""
        for position in range(len(self.places)):
            self.deliver(position, b"")
