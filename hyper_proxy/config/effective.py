"""What is in force, key by key: the value, its default, the line it stands on, and whether a reload can change it.

A record has every default filled in and does not know what was written; the lines of the file's keys say that. Keys are
named by the name of their instance, not by its place, so that two configurations can be compared:
instance[shop].level[0].timeout.read_ms
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any

from hyper_proxy.config.addresses import ROOMS
from hyper_proxy.config.checks import Size, Text, show_size
from hyper_proxy.config.kinds import KINDS, LOGIN, PLACED
from hyper_proxy.config.model import Config, Instance, Level, Listen, Plugin, Pool, Server
from hyper_proxy.config.notes import Path, show_path
from hyper_proxy.config.place import REQUIRED
from hyper_proxy.config.setting import ByProtocol, Setting
from hyper_proxy.config.settings import keys_of

MASKED = "***"


@dataclass(frozen=True, slots=True)
class Effective:
    """One key. `line` is 0 when a default is in force; `default` is "" when the file must say the value; `takes` is
    what a change takes: "a reload" of the workers that run, "new workers", which a reload starts, or "a restart"."""

    key: str
    value: str
    default: str
    line: int
    hot: bool
    takes: str
    secret: bool

    def masked(self) -> Effective:
        """The same without what is secret."""
        return replace(self, value=json.dumps(MASKED)) if self.secret and self.value != '""' else self


def effective(config: Config, lines: Mapping[str, int]) -> list[Effective]:
    """Every key that has a meaning in this configuration. `lines`: of what is written, by path ("log.file").

    Secrets stand in it as they are: see `masked`.
    """
    return [
        _row(setting, part, lines)
        for part in _parts(config)
        for setting in keys_of(part.section).values()
        if setting.fits(part.kind) or _fits_plug_in(setting, part)
    ]


def _fits_plug_in(setting: Setting, part: _Part) -> bool:
    """The master, which is asked, does not load plug-ins, and knows none of their names."""
    return part.section == "level" and part.kind not in KINDS and setting.only in (PLACED, LOGIN)


def differences(old: list[Effective], new: list[Effective]) -> list[dict[str, Any]]:
    """The keys whose values differ: {"key", "before", "after", "line"}; null is a key that is not there."""
    before = {row.key: row for row in old}
    after = {row.key: row for row in new}
    found = []
    for key in [*after, *(key for key in before if key not in after)]:
        was, now = before.get(key), after.get(key)
        if (was and was.value) != (now and now.value):
            found.append(
                {
                    "key": key,
                    "before": was.masked().value if was else None,
                    "after": now.masked().value if now else None,
                    "line": now.line if now else 0,
                }
            )
    return found


def as_json(rows: list[Effective]) -> list[dict[str, Any]]:
    """The same as plain data, secrets masked."""
    return [asdict(row.masked()) for row in rows]


@dataclass(frozen=True, slots=True)
class _Part:
    """One table of the file. `kind` is the protocol or storage that decides which of its keys have a meaning."""

    section: str
    values: object
    path: Path
    name: str
    kind: str = ""

    def get(self, key: str) -> object:
        if isinstance(self.values, dict):
            return self.values[key]
        if key == "servers" and isinstance(self.values, Level | Pool) and self.values.peers:
            return (*self.values.servers, ROOMS, *self.values.peers)
        return getattr(self.values, key)


def _parts(config: Config) -> Iterator[_Part]:
    yield _Part("proxy", config, ("proxy",), "proxy")
    admin = {"listen": config.admin, "token": config.admin_token, "show_keys": config.show_keys}
    yield _Part("admin", admin, ("admin",), "admin")
    yield _Part("log", config.log, ("log",), "log")
    for index, instance in enumerate(config.instances):
        yield from _of_instance(instance, ("instance", index), f"instance[{instance.name}]")


def _of_instance(instance: Instance, path: Path, name: str) -> Iterator[_Part]:
    yield _Part("instance", instance, path, name, instance.protocol)
    yield _Part("limits", instance.limits, (*path, "limits"), f"{name}.limits", instance.protocol)
    yield _Part("write_back", instance.write_back, (*path, "write_back"), f"{name}.write_back", instance.protocol)
    for index, level in enumerate(instance.levels):
        yield from _of_level(level, (*path, "level", index), f"{name}.level[{index}]")


def _of_level(level: Level, path: Path, name: str) -> Iterator[_Part]:
    kind = level.storage
    yield _Part("level", level, path, name, kind)
    for index, pool in enumerate(level.pools):
        yield _Part("pool", pool, (*path, "pool", index), f"{name}.pool[{pool.name}]", kind)
    yield _Part("rooms", level.rooms, (*path, "rooms"), f"{name}.rooms", kind)
    yield _Part("timeout", level.timeout, (*path, "timeout"), f"{name}.timeout", kind)
    yield _Part("backoff", level.backoff, (*path, "backoff"), f"{name}.backoff", kind)


def _row(setting: Setting, part: _Part, lines: Mapping[str, int]) -> Effective:
    default = setting.default
    if isinstance(default, ByProtocol):
        default = default.of(part.kind)
    return Effective(
        key=f"{part.name}.{setting.key}",
        value=_text(_table(part.get(setting.key), default), setting),
        default="" if default is REQUIRED else _text(default, setting),
        line=lines.get(show_path((*part.path, setting.key)), 0),
        hot=setting.hot,
        takes="a reload" if setting.hot else "a restart" if setting.restart else "new workers",
        secret=isinstance(setting.kind, Text) and setting.kind.secret,
    )


def _table(value: object, default: object) -> object:
    """A record has a table as pairs."""
    return dict(value) if isinstance(default, dict) and isinstance(value, tuple) else value


def _text(value: object, setting: Setting) -> str:
    """As it might be written in a file."""
    if isinstance(setting.kind, Size) and isinstance(value, int):
        size = show_size(value)
        return size if size.isdigit() else json.dumps(size)
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, Listen):
        return value.address
    if isinstance(value, Server):
        weight = f":{value.weight}" if value.weight != 1 else ""
        return f"{value.address}{weight} {value.name}".rstrip()
    if isinstance(value, Plugin):
        return value.name
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
