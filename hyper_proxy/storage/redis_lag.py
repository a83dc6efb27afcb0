"""How far replicas are behind their masters, and whether they may be read from.

A master and its replicas count the bytes of the same stream (INFO replication). A replica had all at the moment of the
last sample of its master's count that it has reached; since then it is behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from time import monotonic

from hyper_proxy.common import parallel
from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.asking import ask
from hyper_proxy.conn_pool.node import Greeting
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
        replica.late = _late(replica, _info(replica, greeting), group.offsets, max_lag_s)
    group.turn_to(master, group.replicas)


def _late(replica: Member, info: dict[str, str], offsets: deque[tuple[float, int]], max_lag_s: float) -> str:
    """Why a replica must not be read from, "" when it may."""
    if not info:
        return "it does not answer"
    if info.get("role") != "slave":
        return "it is no replica"
    if info.get("master_link_status") != "up":
        return "its link to the master is down"
    reached = _number(info.get("slave_repl_offset")) or 0
    replica.caught_up_at = max([replica.caught_up_at, *(at for at, offset in offsets if offset <= reached)])
    now = monotonic()
    caught_up = bool(offsets) and offsets[-1][1] <= reached and offsets[-1][0] == replica.caught_up_at
    replica.behind_s = 0.0 if caught_up else round(now - replica.caught_up_at, 3) if replica.caught_up_at else 0.0
    if max_lag_s and (replica.behind_s > max_lag_s or not replica.caught_up_at):
        return f"it is {replica.behind_s:g} s behind"
    return ""


def _info(member: Member, greeting: Greeting) -> dict[str, str]:
    """{} when it does not answer."""
    try:
        return read_info(ask(member.lane(greeting), QUESTION, ADMIN))
    except (BackendError, ReplyError):
        return {}


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
