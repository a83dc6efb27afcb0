"""The one table of settings: what can be written in a configuration file, and what holds when it is not written.

The reader, the suggestions for misspelt keys, the reference in docs/configuration.md and the test of
etc/hyper_proxy.toml follow this table. Its rows stand in three files, by the sections they belong to. A new setting is
one row there, one field of its section's record (model.py, level_model.py, rooms.py) and one line in the sample.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyper_proxy.config.fleet_settings import FLEET
from hyper_proxy.config.instance_settings import INSTANCE
from hyper_proxy.config.level_settings import LEVEL
from hyper_proxy.config.setting import Setting


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the file, in the section `parent`; `many` says that it is written [[section]], once or more, or not
    at all where it is not `needed`."""

    parent: str
    key: str
    help: str
    many: bool = False
    needed: bool = True


SECTIONS: dict[str, Section] = {
    "proxy": Section("", "proxy", "The fleet as a whole."),
    "admin": Section("", "admin", "The sidecar: its page, statistics, metrics, health, and the orders of operators."),
    "log": Section("", "log", "The log of all processes."),
    "instance": Section("", "instance", "A front: a protocol on some addresses, and the storage behind it.", many=True),
    "limits": Section("instance", "limits", "What one client of the instance may ask for."),
    "write_back": Section("instance", "write_back", "How what a lower level found is kept in the levels above it."),
    "level": Section("instance", "level", "The storage, and how keys are spread over its servers.", many=True),
    "pool": Section(
        "level", "pool", "Further servers that the level's route may send requests to.", many=True, needed=False
    ),
    "rooms": Section("level", "rooms", "How the rooms on both sides of '----' in servers stand in for each other."),
    "timeout": Section("level", "timeout", "Deadlines towards one server, each counted apart."),
    "backoff": Section("level", "backoff", "The pause before a lost server is dialled again: doubled, with jitter."),
}

SETTINGS: tuple[Setting, ...] = (*FLEET, *INSTANCE, *LEVEL)


def keys_of(section: str) -> dict[str, Setting]:
    """The settings of a section by key, in the order of the table."""
    return {setting.key: setting for setting in SETTINGS if setting.section == section}


def sections_in(parent: str) -> dict[str, str]:
    """Key to section name, of the sections that stand directly in `parent` ("" is the file itself)."""
    return {section.key: name for name, section in SECTIONS.items() if section.parent == parent}


def name_of(section: str) -> str:
    """The section's full name in a file: instance.level.timeout."""
    row = SECTIONS[section]
    return f"{name_of(row.parent)}.{row.key}" if row.parent else row.key


def header_of(section: str) -> str:
    """How the section is headed in a file: [log], [[instance]], [instance.limits]."""
    return f"[[{name_of(section)}]]" if SECTIONS[section].many else f"[{name_of(section)}]"
