"""Who is connected: for an operator to look at, and to send away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hyper_proxy.front import Front


def list_clients(fronts: Mapping[str, Front], limit: int) -> dict[str, Any]:
    """`clients`: at most `limit` records, the longest connected first; `total`: how many there are."""
    now = monotonic()
    everyone = [(client, name) for name, front in fronts.items() for client in front.clients]
    everyone.sort(key=lambda row: row[0].since)
    rows = [
        {
            "address": client.address,
            "instance": name,
            "listener": client.local_address,
            "age_s": round(now - client.since, 3),
            "idle": client.idle,
            "bytes_in": client.bytes_in,
            "bytes_out": client.bytes_out,
        }
        for client, name in everyone[:limit]
    ]
    return {"total": len(everyone), "clients": rows}


def disconnect(fronts: Iterable[Front], address: str) -> int:
    """End the connections of "host:port", "unix:number", or of all clients from "host"; how many there were."""
    found = [
        client
        for front in fronts
        for client in front.clients
        if address in (client.address, client.address.rpartition(":")[0])
    ]
    for client in found:
        client.hang_up()
    return len(found)
