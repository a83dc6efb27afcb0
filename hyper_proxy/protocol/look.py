"""A closer look at a batch that was slow or is sampled: where its time went, and which keys it asked for.

Everything here runs after the fact. The phases come from times that exist anyway: when the batch was read, when all of
it had been handed to the lanes, when the lane whose reply came last had sent it and got its reply, when the answer was
put together, and when it was written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from hyper_proxy.common.clock import now
from hyper_proxy.common.errors import BackendError
from hyper_proxy.common.keyname import digest, readable
from hyper_proxy.stats.watch import KEYS_EVERY

FAILED = (b"-", b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR")  # how an answer that is an error begins, in any protocol
SERVER_SAID = "reply"  # the kind of an error that a server, or the proxy in its stead, has worded
KEYS_OF_A_REQUEST = 16  # of a sampled one that are counted


class Asked(NamedTuple):
    """One request, as it was read. blocking: it waits for other clients. sizes: bytes of its values, in the order of
    the keys, as far as the request tells them.
    """

    command: str
    keys: list[bytes]
    blocking: bool = False
    sizes: list[int] | None = None


@dataclass(slots=True)
class Phases:
    """Seconds; docs/statistics.md says what each is."""

    parse: float = 0.0
    queue: float = 0.0
    connect: float = 0.0
    storage: float = 0.0
    merge: float = 0.0


@dataclass(slots=True)
class Draft:
    """What becomes a record when the answer is written. seen: the bytes that were read, those of the batch are
    seen[start:end]. admitted: it is certain already that it is to be recorded, and within the limit.
    """

    began: float
    ended: float
    phases: Phases
    node: str
    error: str
    seen: bytes | None
    start: int
    end: int
    requests: int
    bytes_out: int
    admitted: bool = True


def look(session: Any, us: int, count: int, slots: list[Any] | None, out: bytes) -> Draft | None:
    """The batch has taken `us` microseconds, which is slow, or is to be logged; the Draft, if it is to be recorded.

    slots: the replies, if one of them is a failure; may be None else.
    """
    watch = session.watch
    if us >= watch.slow_us:
        if _admit(watch, watch.journal.slow):
            return _draft(session, count, slots, out)
        watch.slow += 1
    elif _admit(watch, watch.journal.sampled):
        return _draft(session, count, slots, out)
    return None


def look_at_stall(session: Any, size: int) -> Draft:
    """The client takes its answer, of `size` bytes, slowly; it is seen at the end whether that made it slow."""
    draft = _draft(session, 1, None, b"")
    draft.bytes_out = size
    draft.admitted = False
    return draft


def look_again(session: Any, sight: Any) -> Draft:
    """The batch is of the plainest kind, and to be recorded (hyper_proxy/stats/access.py), but slow after all."""
    draft = _draft(session, sight.requests, None, b"", sight.ended)
    draft.bytes_out = sight.bytes_out
    draft.error = SERVER_SAID if sight.failed else ""
    return draft


def finish(session: Any, draft: Draft) -> None:
    """The answer is written: make the record."""
    watch = session.watch
    written = now()
    total_us = _us(written - draft.began)
    slow = total_us >= watch.slow_us
    asked = None if draft.seen is None else session.describe(draft.seen, draft.start, draft.end, 0)
    if not (slow or draft.admitted) or (asked is not None and asked.blocking):  # that one waited for other clients
        return
    watch.slow += slow
    if not draft.admitted and not _admit(watch, watch.journal.slow):
        return
    phases = draft.phases
    watch.journal.put(
        {
            "at": round(time.time() - (written - draft.began), 3),
            "slot": watch.journal.slot,
            "instance": watch.instance,
            "client": session.client.address,
            "command": asked.command if asked else "",
            "requests": draft.requests,
            "keys": len(asked.keys) if asked else 0,
            "key": _name(asked.keys[0], watch.journal.show_keys) if asked and asked.keys else "",
            "node": draft.node,
            "bytes_in": draft.end - draft.start,
            "bytes_out": draft.bytes_out,
            "total_us": total_us,
            "parse_us": _us(phases.parse),
            "queue_us": _us(phases.queue),
            "connect_us": _us(phases.connect),
            "storage_us": _us(phases.storage),
            "merge_us": _us(phases.merge),
            "write_us": _us(written - draft.ended),
            "error": draft.error,
        },
        slow,
    )


def count_keys(session: Any, index: int, reply: object) -> None:
    """Count the keys of the batch's request number `index`, and note how large their values are.

    reply: None where it is not known which it is.
    """
    asked = None if session.seen is None else session.describe(session.seen, session.seen_from, session.seen_to, index)
    if asked is None or not asked.keys:
        return
    watch = session.watch
    keys = asked.keys
    sizes = asked.sizes or (session.sizes(asked, reply) if isinstance(reply, bytes) else None)
    weight = KEYS_EVERY
    if len(keys) > KEYS_OF_A_REQUEST:
        step = len(keys) // KEYS_OF_A_REQUEST
        first = int(watch.keys_due) % step
        sizes = sizes[first::step] if sizes else None
        keys, weight = keys[first::step], weight * step
    for key in keys:
        watch.hot.add(key, weight)
    if sizes:
        for key, size in zip(keys, sizes, strict=False):
            watch.big.add(key, size)


def _draft(session: Any, count: int, slots: list[Any] | None, out: bytes, ended: float = 0.0) -> Draft:
    ended = ended or now()
    failures = session.failures(slots)
    phases, node = _phases(session, ended)
    failure = next((one for one in failures if _label(one) == node), failures[0] if failures else None)
    error = failure.kind if failure is not None else session.complaint(out)
    return Draft(
        session.began, ended, phases, node if failure is None else _label(failure), error,
        session.seen, session.seen_from, session.seen_to, count, len(out),
    )  # fmt: skip


def failures(slots: Iterable[Any]) -> list[BackendError]:
    """The failures of servers among replies of theirs."""
    return [slot for slot in slots if isinstance(slot, BackendError)]


def complaint(out: bytes) -> str:
    """What a record calls it when replies of servers begin with an error that is none of the above."""
    return SERVER_SAID if out.startswith(FAILED) else ""


def _label(failure: BackendError) -> str:
    """The server's label, of which its address may follow (Node.where)."""
    return failure.node.partition(" (")[0]


def _phases(session: Any, ended: float) -> tuple[Phases, str]:
    """Where the time until `ended` went, and the node that it was spent at last."""
    walked = session.walked
    phases = Phases(parse=walked - session.began, merge=ended - walked)
    node = ""
    for node, queue_s, connect_s, storage_s in session.batch.waits or ():  # noqa: B007  the last one's is wanted
        phases.parse -= queue_s + connect_s + storage_s
        phases.queue += queue_s
        phases.connect += connect_s
        phases.storage += storage_s
    lane = _answering(session)
    if lane is None:
        if session.batch.waits and not any(session.batch.waits[-1][1:]):  # it came from below the first level
            phases.storage, phases.merge = phases.storage + phases.merge, 0.0
        return phases, node
    queue_s, connect_s, storage_s = lane.flights.journey(walked)
    phases.queue += queue_s
    phases.connect += connect_s
    phases.storage += storage_s
    phases.merge -= queue_s + connect_s + storage_s
    return phases, lane.node.label


def _answering(session: Any) -> Any:
    """The lane whose reply, or failure, was the last that the batch waited for."""
    transaction = getattr(session, "transaction", None)
    lanes = getattr(session, "lanes", ())
    if transaction is not None and transaction.lane is not None:
        lanes = [*lanes, transaction.lane]
    return next((lane for lane in _connections(lanes) if lane.flights.answering_at >= session.walked), None)


def _connections(lanes: Iterable[Any]) -> Iterator[Any]:
    """The lanes, and in the place of a route's those of its children."""
    for lane in dict.fromkeys(lanes):
        children = getattr(lane, "lanes", None)
        if children is None:
            yield lane
        else:
            yield from _connections(children)


def _admit(watch: Any, allowance: Any) -> bool:
    if allowance.take():
        return True
    watch.unlogged += 1
    return False


def _name(key: bytes, show: bool) -> str:
    return readable(key) if show else digest(key)


def _us(seconds: float) -> int:
    return max(0, int(seconds * 1e6))
