"""How far replicas are behind their masters, and whether they may be read from.

A master and its replicas count the bytes of the same stream (INFO replication). A replica had all at the moment of the
last sample of its master's count that it has reached; since then it is behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic

from hyper_proxy.common import log, parallel
from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.asking import ask
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.replies import ReplyError
from hyper_proxy.conn_pool.topology.group import Group
from hyper_proxy.conn_pool.topology.member import Member
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.storage.redis_topology_words import read_info
from hyper_proxy.storage.redis_words import encode

QUESTION = encode("INFO", "replication")


def measure(groups: Iterable[Group], greeting: Greeting, max_lag_s: float) -> None:
    """Ask all masters and replicas, and let each group know which replicas may be read from."""
    parallel.each(lambda group: _measure(group, greeting, max_lag_s), [one for one in groups if one.replicas])


def _measure(group: Group, greeting: Greeting, max_lag_s: float) -> None:
    master = group.master
    at = monotonic()
    offset = _number(_info(master, greeting).get("master_repl_offset"))
    if offset is not None:
        group.offsets.append((at, offset))
    for replica in group.replicas:
        late = _late(replica, _info(replica, group.of_replica(greeting)), group.offsets, at, max_lag_s)
        if bool(late) != bool(replica.late):
            where = {"instance": replica.instance, "node": replica.label}
            log.warning("replica.late", **where, why=late) if late else log.info("replica.back", **where)
        replica.late = late
        replica.is_looked_at = True
    group.turn_to(master, group.replicas)


def _late(
    replica: Member, info: dict[str, str], offsets: deque[tuple[float, int]], since: float, max_lag_s: float
) -> str:
    """Why a replica must not be read from, "" when it may. since: when this look began."""
    if not info:
        return "it does not answer"
    if info.get("role") != "slave":
        return "it is no replica"
    if info.get("master_link_status") != "up":
        return "its link to the master is down"
    reached = _number(info.get("slave_repl_offset")) or 0
    replica.caught_up_at = max([replica.caught_up_at, *(at for at, offset in offsets if offset <= reached)])
    if not replica.caught_up_at:
        return "nobody knows yet how far it is behind" if max_lag_s else ""
    replica.behind_s = 0.0 if replica.caught_up_at >= since else round(monotonic() - replica.caught_up_at, 3)
    return f"it is {replica.behind_s:g} s behind" if max_lag_s and replica.behind_s > max_lag_s else ""


def _info(member: Member, greeting: Greeting) -> dict[str, str]:
    """{} when it does not answer."""
    try:
        return read_info(ask(member.lane(greeting), QUESTION, ADMIN))
    except (BackendError, ReplyError):
        return {}


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
