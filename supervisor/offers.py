"""What a worker that runs is given to prepare: listeners that it lacks, one descriptor each, then the configuration."""

from __future__ import annotations

import base64
import pickle

from hyper_proxy.config.model import Config
from supervisor.current import Current
from supervisor.fleet import Fleet
from supervisor.listeners import Wanted, wanted
from supervisor.slots import Slot


def send_prepare(fleet: Fleet, slot: Slot, number: int, before: Config, plan: Current) -> None:
    """In the transaction of this number. A full pipe shows as a missing answer."""
    old, new = wanted(before), wanted(plan.config)
    offers, closed = _differences(old, new)
    for wish in offers:
        address = wish.listen.address
        listener = plan.listeners[address]
        offer = {"type": "listener", "id": number, "instance": wish.instance, "address": address}
        fleet.send(slot, offer, (listener.of(slot.index).fileno(),))
    fleet.send(
        slot,
        {
            "type": "prepare",
            "id": number,
            "generation": plan.generation,
            "config": base64.b64encode(pickle.dumps(plan.config)).decode(),
            "close": [[wish.instance, wish.listen.address] for wish in closed],
        },
    )


def _differences(old: dict[str, Wanted], new: dict[str, Wanted]) -> tuple[list[Wanted], list[Wanted]]:
    """What a worker must start to serve and what it must close. An address that changes hands is in both."""
    offers = [wish for address, wish in new.items() if not _same(old.get(address), wish)]
    closed = [wish for address, wish in old.items() if not _same(new.get(address), wish)]
    return offers, closed


def _same(one: Wanted | None, other: Wanted) -> bool:
    return one is not None and (one.instance, one.protocol) == (other.instance, other.protocol)
