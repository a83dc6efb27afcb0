"""What may be said of a level whose servers are found out (HP224), with what to do about what may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hyper_proxy.config.model import Config, Instance, Level
from hyper_proxy.config.notes import Path

PLACING = ("distribution", "hash", "hash_tag")

Fault = tuple[str, str]  # the key, and what is said of it


def topology_faults(config: Config, written: Callable[[Path], bool]) -> Iterator[tuple[Path, str]]:
    """Where, and what is said. written: does the file itself say this key?"""
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            path: Path = ("instance", i, "level", j)
            faults = _of_topology(instance, level) if level.is_found_out else _of_servers(level)
            for key, text in faults:
                yield (*path, key), text
            for key in PLACING if level.topology == "cluster" else ():
                if written((*path, key)):
                    yield (*path, key), f"a redis cluster itself places its keys: take {key} out"


def _of_servers(level: Level) -> Iterator[Fault]:
    yield from _without_sentinels(level)
    if level.masters:
        yield "masters", 'only sentinels know masters by name: it takes topology = "sentinel"'
    if level.reads != "master":
        yield "reads", 'the replicas of listed servers are not known: it takes topology = "cluster" or "sentinel"'


def _without_sentinels(level: Level) -> Iterator[Fault]:
    for key in ("sentinel_username", "sentinel_password"):
        if getattr(level, key):
            yield key, 'there are no sentinels: it takes topology = "sentinel". What the servers ask for is `password`'


def _of_topology(instance: Instance, level: Level) -> Iterator[Fault]:
    if level.reads != "master" and len(instance.levels) > 1:
        yield "reads", "what a replica lacks would be kept above, or put there: of several levels masters are read"
    if level.route is not None or level.pools:
        yield "topology", f"a {level.topology} has no pools and no route: it finds its servers itself"
    if level.peers:
        yield "servers", f"a {level.topology} has no second room: it finds its servers itself"
    if level.topology == "cluster" and level.db:
        yield "db", "a redis cluster has database 0 only"
    if level.topology == "cluster":
        yield from _without_sentinels(level)
    elif level.sentinel_username and not level.sentinel_password:
        yield "sentinel_username", "a username is only given together with a password: sentinel_password is missing"
    if level.topology == "cluster" and level.masters:
        yield "masters", "a redis cluster itself knows its masters"
    if level.topology == "sentinel" and not level.masters:
        yield "topology", "masters is missing: the names under which the sentinels know the masters"
    for name in sorted({name for name in level.masters if level.masters.count(name) > 1}):
        yield "masters", f"'{name}' is listed twice"
