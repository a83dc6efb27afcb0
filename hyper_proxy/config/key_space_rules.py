"""What levels take that are one key space (HP213): that nobody changes behind its back what a level `local` has copies
of, and that their servers are asked one by one; and who writes below copies in servers (HP408)."""

from __future__ import annotations

from collections.abc import Iterator

from hyper_proxy.config.build import BLANK_SERVER
from hyper_proxy.config.copies import is_told, written_pools
from hyper_proxy.config.kinds import LOCAL, PIPELINED
from hyper_proxy.config.model import Config, Instance
from hyper_proxy.config.notes import Path

Home = tuple[str, str, str]  # address, and database and table where there are some
Fault = tuple[int, str, str]  # the level, the key, and what is said of it


def key_space_faults(config: Config, instance: Instance) -> Iterator[Fault]:
    """Of an instance that has at least one level."""
    last = len(instance.levels) - 1
    if instance.levels[last].route is not None and not instance.forwards and instance.levels[last].storage in PIPELINED:
        what = f"{instance.levels[last].storage} servers behind {instance.protocol} clients have"
        what = "the last of several levels has" if last else what
        yield last, "route", f"{what} no route, they are asked one by one; a level above another may have one"
    if instance.levels[0].storage == LOCAL:
        for text in _of_copies(config, instance):
            yield 0, "storage", text


def _of_copies(config: Config, instance: Instance) -> Iterator[str]:
    last = instance.levels[-1]
    if last.writers:
        yield "a read may come from a server that has not received the last write yet, and would be kept: no `writers`"
    for other in config.instances:
        shared = _homes(instance) & _homes(other)
        if shared and other.levels[0].storage != LOCAL:
            text = f"instance '{other.name}' writes to {min(shared)[0]}, too, and tells nobody: give it a local level"
            yield f"{text}, or take this one away"


def unseen_writes(config: Config) -> Iterator[tuple[Path, str]]:
    """Where instances write below copies that others keep in servers (HP408)."""
    for i, writer in enumerate(config.instances):
        for keeper in config.instances:
            shared = _homes(keeper) & _homes(writer)
            if keeper is not writer and shared and not _is_told(keeper, writer):
                text = f"instance '{keeper.name}' keeps copies of what {min(shared)[0]} has, and does not see what is "
                text += "written here before they end: give both the same levels above, unless this one only reads"
                yield ("instance", i, "level", len(writer.levels) - 1, "servers"), text


def _is_told(keeper: Instance, writer: Instance) -> bool:
    """Does the writer mark all the copies? Or is something said already: HP213 of copies in workers, HP218 of writes
    that wait?"""
    said = keeper.levels[0].storage == LOCAL != writer.levels[0].storage
    said = said or any(level.write == "behind" for level in keeper.levels)
    return said or _caches(keeper) <= _caches(writer)


def _homes(instance: Instance) -> frozenset[Home]:
    found: set[Home] = set()
    for level in instance.levels[-1:]:
        table = level.table.label if level.table else ""
        found |= {(one.address, level.database, table) for one in level.everyone if one != BLANK_SERVER}
    return frozenset(found)


def _caches(instance: Instance) -> frozenset[str]:
    """The servers of levels above another that hold copies, in which a write leaves its mark."""
    pools = [
        pool for level in instance.levels[:-1] if is_told(level)
        for name, pool in level.pool_levels().items() if name in written_pools(level)
    ]  # fmt: skip
    return frozenset(server.address for pool in pools for server in pool.servers if server != BLANK_SERVER)
