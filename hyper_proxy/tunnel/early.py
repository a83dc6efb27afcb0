"""Copies that everybody wants are fetched anew a little before they end, so that nobody has to wait for the last level.

A hit says neither its key nor how long its copy has yet to live, and asking for that would cost every hit. So nothing
is done with hits: each worker knows its hot keys by the samples it takes anyway (hyper_proxy/stats/hotkeys.py), and of
these it remembers which copies it has put there itself, and when they end at the earliest. Since nobody else will do
the same, a fixed time before that end does what the dice of XFetch do (Vattani, Chierichetti, Lowenstein, "Optimal
Probabilistic Cache Stampede Prevention", 2015): twice what the question took, and the time to notice it.

The new value takes the place of the copy that was there before the levels below were asked, and of nothing else: not of
a mark, nor of a copy that came after one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.leases import LEASES, Grant
from hyper_proxy.config.copies import keeps_several
from hyper_proxy.stats.classes import IDEMPOTENT
from hyper_proxy.storage.claims import CLAIMS
from hyper_proxy.storage.keyvalue import Item
from hyper_proxy.tunnel.outcome import Told
from hyper_proxy.tunnel.tier import Part, Tier

if TYPE_CHECKING:
    from hyper_proxy.tunnel.below import Ask

LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Copy:
    """Put there by this worker. ends_at: at the earliest; took_s: the question below."""

    shard: int
    ends_at: float
    took_s: float

    @property
    def due_at(self) -> float:
        """When it is to be fetched anew."""
        return self.ends_at - 2 * self.took_s - 2 * LOOK_S


class Early:
    """The hot keys of one tier."""

    def __init__(self, tier: Tier, depth: int, ask: Ask) -> None:
        self.tier = tier
        self.depth = depth
        self.ask = ask
        self.copies: dict[bytes, Copy | None] = {}  # of the hot keys; None: another worker's, or none
        level = tier.level
        # Where writes put values in the place of others, an equal copy may be a later one.
        self.able = tier.write_back.refresh and tier.keeps and level.write == "invalidate" and level.storage in CLAIMS
        # memcached replaces by the version that one server has told of.
        self.able = self.able and (level.storage != "memcache" or not keeps_several(level))

    def watch(self, hot: Iterable[bytes]) -> None:
        """These keys are hot: fetch those whose copies end soon."""
        if not self.able:
            return
        self.copies = {key: self.copies.get(key) for key in hot}
        now = monotonic()
        for key, copy in self.copies.items():
            if copy is not None and copy.due_at <= now:
                self.copies[key] = None
                gevent.spawn(self._fetch, key, copy)

    def note(self, key: bytes, item: Told, shard: int, took_s: float) -> None:
        """This worker has put a copy there."""
        if key not in self.copies or not isinstance(item, Item):
            return
        back = self.tier.write_back
        if item.expires_at is None:  # else it may end by itself, and there is nothing to be fetched then
            self.copies[key] = Copy(shard, monotonic() + back.ttl * (1 - back.jitter), took_s)

    def _fetch(self, key: bytes, copy: Copy) -> None:
        place = LEASES.place(self.tier.instance, self.depth, key)
        grant = LEASES.take(place)
        if grant is Grant.TAKEN:
            return
        try:
            self._replace(key, copy.shard)
        except BackendError:  # counted by its node; the copy ends in its time
            pass
        finally:
            if grant is Grant.MINE:
                LEASES.give_back(place, filled=True)

    def _replace(self, key: bytes, shard: int) -> None:
        tier = self.tier
        (old,) = tier.read(Part(shard, [0], [key]))
        began = monotonic()
        (item,) = self.ask([key])
        took_s = monotonic() - began
        if isinstance(old, Item) and isinstance(item, Item) and took_s <= tier.pace.fill_s:
            ask = partial(tier.ask, shard, klass=IDEMPOTENT)
            (there,) = CLAIMS[tier.cache.kind].replace(old.value, [(key, item, tier.seconds(item))], ask)
            if there:
                tier.counts.level_refreshes += 1
                self.note(key, item, shard, took_s)
