"""What differs between two configurations, in words, and what of it only a restart can bring into force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from hyper_proxy.config.model import Config, Instance


@dataclass(frozen=True, slots=True)
class ColdSetting:
    """A setting that is fixed when the master or a worker starts: its key, its value as written and as it works, and
    why it is fixed."""

    key: tuple[str, str]
    written: Callable[[Config], object]
    works: Callable[[Config], object]
    reason: str

    def differs(self, old: Config, new: Config) -> bool:
        """0 workers may mean the same as 4, and may mean something else than it did at the start; neither is a
        change."""
        return self.written(old) != self.written(new) and self.works(old) != self.works(new)


RENEWING: tuple[ColdSetting, ...] = (
    ColdSetting(
        ("proxy", "workers"),
        lambda config: config.workers,
        lambda config: config.worker_count,
        "each worker has its own listening sockets",
    ),
    ColdSetting(
        ("proxy", "plugins"),
        lambda config: config.plugins,
        lambda config: config.plugins,
        "a process loads the code of a plug-in once",
    ),
)
"""What a reload brings into force with a new generation of workers."""

COLD: tuple[ColdSetting, ...] = (
    ColdSetting(
        ("proxy", "pidfile"),
        lambda config: config.pidfile,
        lambda config: config.pidfile,
        "the lock of the running master is on that file",
    ),
    *(
        ColdSetting(("proxy", key), attrgetter(key), attrgetter(key), "the master has given up the right to change it")
        for key in ("user", "group")
    ),
)


def renewing_changes(old: Config, new: Config) -> list[str]:
    """The keys that differ and that only newborn workers can have."""
    return [".".join(row.key) for row in RENEWING if row.differs(old, new)]


def cold_changes(old: Config, new: Config) -> list[tuple[tuple[str, str], str]]:
    """The settings that differ and take a restart, each with a sentence for the operator."""
    return [
        (row.key, f"{_quoted(row.written(old))} is in force, {_quoted(row.written(new))} needs a restart: {row.reason}")
        for row in COLD
        if row.differs(old, new)
    ]


def _quoted(value: object) -> str:
    """As the file writes it: "" is nothing that a reader would see without quotes."""
    return json.dumps(value, ensure_ascii=False)


PLACEMENT = ("storage", "servers", "hash", "distribution", "hash_tag", "db", "lushan_db")
"""The settings of a level that decide where a key is looked for."""


def placement_changes(old: Config, new: Config) -> list[str]:
    """The names of the instances, of those that stay, whose keys may be looked for elsewhere from now on."""
    before = {instance.name: _placement(instance) for instance in old.instances}
    return [one.name for one in new.instances if before.get(one.name, _placement(one)) != _placement(one)]


def _placement(instance: Instance) -> list[list[object]]:
    return [[getattr(level, name) for name in PLACEMENT] for level in instance.levels]


def placement_warning(name: str) -> str:
    """What an operator must know before keys seem to be lost."""
    return f"placement of keys changed in instance '{name}': keys may now be looked for on other servers"


_OTHERS = ("scheduling", "drain_timeout_s", "prepare_timeout_s", "hang_timeout_s", "upgrade_timeout_s", "log")


def summary(old: Config, new: Config) -> str:
    """One line that says what changed: "2 instances changed, 1 added; listeners unchanged"."""
    before = {instance.name: instance for instance in old.instances}
    after = {instance.name: instance for instance in new.instances}
    changed = sum(1 for name in before.keys() & after.keys() if before[name] != after[name])
    parts = _counts("instance", changed, len(after.keys() - before.keys()), len(before.keys() - after.keys()))
    places = [{listen.address for instance in config.instances for listen in instance.listen} for config in (old, new)]
    listeners = _counts("listener", 0, len(places[1] - places[0]), len(places[0] - places[1]))
    renewed = [f"{new.worker_count} new workers in the place of the old ones"] if renewing_changes(old, new) else []
    moved = [f"the sidecar is at {new.admin.address}"] if old.admin != new.admin else []
    others = [name for name in _OTHERS if getattr(old, name) != getattr(new, name)]
    tail = [f"{', '.join(others)} changed"] if others else []
    tail = [*renewed, *moved, *tail]
    tail += [placement_warning(name) for name in placement_changes(old, new)]
    return "; ".join([parts or "instances unchanged", listeners or "listeners unchanged", *tail])


def _counts(noun: str, changed: int, added: int, removed: int) -> str:
    pairs: Iterable[tuple[int, str]] = ((changed, "changed"), (added, "added"), (removed, "removed"))
    return ", ".join(f"{count} {noun}{'s' if count > 1 else ''} {what}" for count, what in pairs if count)
