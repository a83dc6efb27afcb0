"""A configuration as an operator's orders bend it: which of its servers are out of service, and which room serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hyper_proxy.config.model import Era, Instance, Server


def overruled(instance: Instance, nodes: Mapping[str, str], room: str = "") -> Instance:
    """The instance with exactly these servers out of service: state (OUT_OF_SERVICE) by label; room: "first" or
    "second", the one that an operator wants to serve.

    Labels that it does not have are left aside: such a server may come back with a later reload. A file has no one to
    be drained from, and stays in service.
    """
    levels = tuple(
        replace(
            level,
            servers=_overruled(level.servers, nodes),
            peers=_overruled(level.peers, nodes),
            rooms=replace(level.rooms, pinned=room),
            writers=_overruled(level.writers, nodes),
            years=tuple((years, _era(era, nodes)) for years, era in level.years),
            pools=tuple(
                replace(pool, servers=_overruled(pool.servers, nodes), peers=_overruled(pool.peers, nodes))
                for pool in level.pools
            ),
        )
        for level in instance.levels
    )
    return replace(instance, levels=levels)


def _era(era: Era, nodes: Mapping[str, str]) -> Era:
    return replace(era, servers=_overruled(era.servers, nodes), writers=_overruled(era.writers, nodes))


def _overruled(servers: tuple[Server, ...], nodes: Mapping[str, str]) -> tuple[Server, ...]:
    return tuple(replace(server, out="" if server.file else nodes.get(server.label, "")) for server in servers)
