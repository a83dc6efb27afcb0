"""Which of two rooms is near: the one that has servers on a network of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path

from hyper_proxy.config.model import Server

ROUTES = Path("/proc/net/route")  # proc(5): Iface Destination Gateway Flags RefCnt Use Metric Mask ...
LOOPBACK = ip_network("127.0.0.0/8")

Network = IPv4Network | IPv6Network


def networks(table: str) -> list[Network]:
    """The networks that are reached without a gateway, of the kernel's table of IPv4 routes, and this machine's own."""
    found: list[Network] = [LOOPBACK]
    for line in table.splitlines()[1:]:
        words = line.split()
        destination, gateway, mask = (int.from_bytes(bytes.fromhex(words[at]), "little") for at in (1, 2, 7))
        if gateway == 0 and mask:
            found.append(IPv4Network((destination, mask.bit_count())))
    return found


def routes() -> str:
    """The kernel's table, empty where there is none."""
    return ROUTES.read_text() if ROUTES.exists() else ""


def nearer(first: Sequence[Server], second: Sequence[Server], table: str) -> int:
    """0 or 1: the room that has more servers near; the first when they are even. Names of hosts count as far."""
    near = networks(table)
    return int(sum(_is_near(one, near) for one in second) > sum(_is_near(one, near) for one in first))


def _is_near(server: Server, near: Sequence[Network]) -> bool:
    if server.path:
        return True
    try:
        address = ip_address(server.host.partition("%")[0])
    except ValueError:
        return server.host == "localhost"
    return address.is_loopback or any(address in network for network in near)
