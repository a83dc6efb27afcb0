"""Where the keys of an instance belong, as two configurations see it: what a reload does to keys that are there."""

from __future__ import annotations

import time

from hyper_proxy.config.model import Config, Instance, Level, Route

SETTINGS = ("storage", "servers", "hash", "distribution", "hash_tag", "db", "lushan_db")
"""The settings of a level that decide where a key is looked for."""


def changed_placements(old: Config, new: Config) -> dict[str, str]:
    """By the names of the instances, of those that stay, whose keys may be looked for elsewhere from now on: what an
    operator must know before keys seem to be lost."""
    return {
        after.name: f"placement of keys changed in instance '{after.name}': keys may now be looked for on other servers"
        for before, after in _staying(old, new)
        if _homes(before) != _homes(after)
    }


def placement_news(old: Config, new: Config) -> dict[str, str]:
    """The same, and of the instances whose keys stay where a move takes them, now without it, on what that relies."""
    changed = changed_placements(old, new)
    ended = {
        after.name: f"the move of instance '{after.name}' has ended: keys that `hyper-proxy reshard` has not moved are "
        "not found any more"
        for before, after in _staying(old, new)
        if after.name not in changed and _has_begun(before) and not any(map(_move, after.levels))
    }
    return changed | ended


def _staying(old: Config, new: Config) -> list[tuple[Instance, Instance]]:
    before = {instance.name: instance for instance in old.instances}
    return [(before[after.name], after) for after in new.instances if after.name in before]


def _homes(instance: Instance) -> list[list[object]]:
    return [[getattr(_home(level), name) for name in SETTINGS] for level in instance.levels]


def _home(level: Level) -> Level:
    """The level with the servers where its keys belong just now: those of a pool, if they move."""
    move = _move(level)
    return level.pool_levels()[move.children[_passed(move) % 2].pool] if move else level


def _move(level: Level) -> Route | None:
    return level.route if level.route is not None and level.route.kind == "move" else None


def _has_begun(instance: Instance) -> bool:
    return any(move is not None and _passed(move) > 0 for move in map(_move, instance.levels))


def _passed(move: Route) -> int:
    """How many of the moments at which keys change their homes are over."""
    moments = [moment for moment in (move.option("begins"), move.option("back")) if moment]
    return sum(moment <= time.time() for moment in moments)
