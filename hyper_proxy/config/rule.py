"""What the rules across keys have in common: how one says what it has found, and what most of them walk over."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from hyper_proxy.config.build import BLANK_SERVER
from hyper_proxy.config.model import Config, Level, Server
from hyper_proxy.config.notes import Notes, Path


@dataclass(frozen=True, slots=True)
class Say:
    """Notes a finding of the rule's code at a path."""

    code: str
    notes: Notes

    def __call__(self, path: Path, message: str) -> None:
        self.notes.add(path, self.code, message)

    def is_default_for(self, path: Path) -> bool:
        """Does a default stand in for what the file says here, since that is wrong?"""
        return path in self.notes.faulty

    def written(self, path: Path) -> bool:
        """Does the file itself say this, or is it a default?"""
        return path in self.notes.lines


def levels_of(config: Config) -> Iterator[tuple[Path, Level]]:
    """The levels of all instances, with their paths."""
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            yield ("instance", i, "level", j), level


def servers_of(level: Level, path: Path) -> Iterator[tuple[Path, Server]]:
    """The usable servers of a level, with their paths: its own in both rooms, writers, those of pools and of years."""
    pools = [((*path, "pool", i, "servers"), pool.servers, pool.peers) for i, pool in enumerate(level.pools)]
    own = (*path, "servers"), level.servers, level.peers
    for years, era in level.years:
        at = (*path, "years", years)
        pools += [((*at, "servers"), era.servers, ()), ((*at, "writers"), era.writers, ())]
    for place, servers, peers in own, ((*path, "writers"), level.writers, ()), *pools:
        for index, server in enumerate((*servers, BLANK_SERVER, *peers)):  # in the file '----' is in the middle
            if server != BLANK_SERVER:
                yield (*place, index), server


def pools_of(level: Level) -> list[tuple[Server, ...]]:
    """The servers of the level itself and of each other pool."""
    return [level.servers, *(pool.servers for pool in level.pools)]


def repeats(rows: list[tuple[Path, Hashable]]) -> Iterator[tuple[Path, Path, Hashable]]:
    """Each row whose value came before, with the first row that had it."""
    first: dict[Hashable, Path] = {}
    for path, value in rows:
        if first.setdefault(value, path) != path:
            yield path, first[value], value
