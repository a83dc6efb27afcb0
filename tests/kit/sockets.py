"""TCP over IPv4 as the kernel sees it (/proc/net/tcp): what has come to a process that stands still."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ESTABLISHED, SYN_SENT = 1, 2  # of the kernel's include/net/tcp_states.h


@dataclass(frozen=True, slots=True)
class Socket:
    """One end of a connection."""

    local: int  # port
    remote: int
    state: int
    unread: int  # bytes


def sockets() -> list[Socket]:
    """All, those that listen included."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [Socket(_port(row[1]), _port(row[2]), int(row[3], 16), int(row[4].split(":")[1], 16)) for row in rows]


def unread(port: int) -> int:
    """Connections on which something has come that who listens on this port has not read."""
    return sum(one.local == port and one.unread > 0 and one.state == ESTABLISHED for one in sockets())


def _port(address: str) -> int:
    return int(address.partition(":")[2], 16)
