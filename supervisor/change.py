"""What differs between two configurations, in words, and what of it only a restart can bring into force."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from hyper_proxy.config.model import Config
from supervisor.placement import placement_news


@dataclass(frozen=True, slots=True)
class ColdSetting:
    """A setting that is fixed when the master or a worker starts: its key, its value as written and as it works, and
    why it is fixed in a fleet that runs with a configuration."""

    key: tuple[str, str]
    written: Callable[[Config], object]
    works: Callable[[Config], object]
    reason: Callable[[Config], str]

    def differs(self, old: Config, new: Config) -> bool:
        """0 workers may mean the same as 4, and may mean something else than it did at the start; neither is a
        change."""
        return self.written(old) != self.written(new) and self.works(old) != self.works(new)


RENEWING: tuple[ColdSetting, ...] = (
    ColdSetting(
        ("proxy", "workers"),
        lambda config: config.workers,
        lambda config: config.worker_count,
        lambda config: "each worker has its own listening sockets",
    ),
    ColdSetting(
        ("proxy", "plugins"),
        lambda config: config.plugins,
        lambda config: config.plugins,
        lambda config: "a process loads the code of a plug-in once",
    ),
)
"""What a reload brings into force with a new generation of workers."""


def _lock(config: Config) -> str:
    return "the lock of the running master is on that file" if config.pidfile else "it is locked as a master starts"


def _right(config: Config) -> str:
    return "the master has given up the right to change it" if config.user else "a fleet becomes that user as it starts"


COLD: tuple[ColdSetting, ...] = (
    ColdSetting(
        ("proxy", "pidfile"),
        lambda config: config.pidfile,
        lambda config: config.pidfile,
        _lock,
    ),
    *(ColdSetting(("proxy", key), attrgetter(key), attrgetter(key), _right) for key in ("user", "group")),
)


def renewing_changes(old: Config, new: Config) -> list[str]:
    """The keys that differ and that only newborn workers can have."""
    return [".".join(row.key) for row in RENEWING if row.differs(old, new)]


def cold_changes(old: Config, new: Config) -> list[tuple[tuple[str, str], str]]:
    """The settings that differ and take a restart, each with a sentence for the operator."""
    return [(row.key, _in_words(row, old, new)) for row in COLD if row.differs(old, new)]


def _in_words(row: ColdSetting, old: Config, new: Config) -> str:
    before, after = _quoted(row.written(old)), _quoted(row.written(new))
    return f"{before} is in force, {after} needs a restart: {row.reason(old)}"


def _quoted(value: object) -> str:
    """As the file writes it: "" is nothing that a reader would see without quotes."""
    return json.dumps(value, ensure_ascii=False)


_OTHERS = ("scheduling", "drain_timeout_s", "prepare_timeout_s", "hang_timeout_s", "upgrade_timeout_s", "log")


def summary(old: Config, new: Config) -> str:
    """One line that says what changed: "2 instances changed, 1 added; listeners unchanged"."""
    before = {instance.name: instance for instance in old.instances}
    after = {instance.name: instance for instance in new.instances}
    changed = sum(1 for name in before.keys() & after.keys() if before[name] != after[name])
    parts = _counts("instance", changed, len(after.keys() - before.keys()), len(before.keys() - after.keys()))
    places = [{listen.address for instance in config.instances for listen in instance.listen} for config in (old, new)]
    listeners = _counts("listener", 0, len(places[1] - places[0]), len(places[0] - places[1]))
    workers = f"{new.worker_count} new worker{'s' if new.worker_count > 1 else ''} in the place of the old ones"
    renewed = [workers] if renewing_changes(old, new) else []
    moved = [f"the sidecar is at {new.admin.address}"] if old.admin != new.admin else []
    others = [name for name in _OTHERS if getattr(old, name) != getattr(new, name)]
    tail = [f"{', '.join(others)} changed"] if others else []
    tail = [*renewed, *moved, *tail]
    tail += placement_news(old, new).values()
    return "; ".join([parts or "instances unchanged", listeners or "listeners unchanged", *tail])


def _counts(noun: str, changed: int, added: int, removed: int) -> str:
    pairs: Iterable[tuple[int, str]] = ((changed, "changed"), (added, "added"), (removed, "removed"))
    return ", ".join(f"{count} {noun}{'s' if count > 1 else ''} {what}" for count, what in pairs if count)
