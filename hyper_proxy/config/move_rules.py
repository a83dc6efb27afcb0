"""What a level whose keys move must be (HP226), with what to do about what can't be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hyper_proxy.config.model import Config, Instance, Level, Route
from hyper_proxy.config.notes import Path
from hyper_proxy.config.routes import all_routes

LEAST_S = 10  # between the moment in which keys begin to move and the one in which they begin to return

Fault = tuple[str, str]  # the key, and what is said of it


def keys_can_move(config: Config, say: Callable[[Path, str], None]) -> None:
    """HP226: `say` takes what is said, and where."""
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            if level.route is not None and any(route.kind == "move" for route in all_routes(level.route)):
                for key, text in _of_move(instance, level, level.route):
                    say(("instance", i, "level", j, key), text)


def _of_move(instance: Instance, level: Level, route: Route) -> Iterator[Fault]:
    if not instance.forwards or level.storage != "redis":
        yield "route", "keys move between redis servers, behind redis clients, in the only level of an instance"
    if route.kind != "move" or any(child.kind != "pool" for child in route.children):
        yield "route", "a move is the whole route of its level, from one pool to another"
        return
    used = {child.pool for child in route.children}
    if len(used) == 1:
        yield "route", "the keys of a pool can't move to the same pool"
    pools = [one for name, one in level.pool_levels().items() if name in used]
    servers = [server for one in pools for server in one.servers]
    if any(one.distribution == "random" for one in pools):
        yield "route", "the distribution is random: a key has no home from which it could move"
    if any(server.path for server in servers):
        yield "route", "servers connect to each other to hand keys over: each needs host:port, no unix socket"
    if level.all_peers:
        yield "route", "servers with peers in a second room do not hand over keys: move them first, then add the room"
    back = route.option("back")
    if back and back < route.option("begins") + LEAST_S:
        yield "route", f"back is before begins, or less than {LEAST_S} seconds behind it"


def shares_server(level: Level, label: str, address: str) -> bool:
    """May this server stand in several pools of the level under one name? Where keys move it stays where it is."""
    moves = level.route is not None and level.route.kind == "move"
    return moves and {server.address for server in level.all_servers if server.label == label} == {address}
