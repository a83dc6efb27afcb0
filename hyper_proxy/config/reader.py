"""Turns the tables of a parsed toml file into plain values, by the table of settings; every fault becomes a finding.

A value that cannot be used is noted and replaced by its default, so that the rest of the file is still read and all of
its faults are found in one go.
"""

from __future__ import annotations

from typing import Any

from hyper_proxy.config.kinds import KINDS, PROTOCOLS
from hyper_proxy.config.notes import Notes, Path, suggest
from hyper_proxy.config.place import REQUIRED, Bad, Place, type_name
from hyper_proxy.config.setting import ByProtocol, Setting
from hyper_proxy.config.settings import SECTIONS, SETTINGS, header_of, keys_of, sections_in

Values = dict[str, Any]

_SUBJECT = {"instance": "protocol", "level": "storage"}
"""The key that decides which others have a meaning in a section and in those below."""
_PLUGGED = frozenset(("protocol", "storage", "hash", "distribution"))
"""The keys whose names plug-ins may add to."""

TWEMPROXY = {
    "hosts": "servers of a level", "redis": "protocol and storage", "redis_db": "db of the level",
    "redis_auth": "password, of the instance (for clients) and of the level (for servers)",
    "client_connections": "[instance.limits] max_clients", "server_connections": "connections of the level",
    "auto_eject_hosts": 'route = { eject = "main" } of the level', "server_retry_timeout": "[instance.level.backoff]",
    "server_failure_limit": "nothing: the first failure counts", "preconnect": "nothing: the proxy decides itself",
    "backlog": "nothing: as long as the system allows", "tcpkeepalive": "nothing: it is always on",
    "reuse_port": "nothing: it is always on",
}  # fmt: skip
"""What keys of its file are called here; `hyper-proxy import nutcracker` turns a whole file into one of ours."""

_ELSEWHERE = (
    ("bind", "listen"), ("port", "listen"), ("requirepass", "password"), ("masterauth", "password"),
    ("auth", "password"), ("databases", "dbs"), ("host", "servers"), ("port", "servers"),
    ("path", "servers"), ("file", "servers"),
)  # fmt: skip
"""Words of the files of redis and of other programs, and what stands for them here."""


class Reader:
    """Reads one file's tables; `folder` is what relative paths start from."""

    def __init__(self, folder: str, notes: Notes) -> None:
        self.folder = folder
        self.notes = notes

    def table(self, section: str, raw: object, path: Path, subject: object = None) -> Values:
        """All keys and sub-tables of a section ("" is the file), defaults filled in."""
        if not isinstance(raw, dict):
            keys = ", ".join([*keys_of(section), *sections_in(section)][:3])
            wanted = f"a table is wanted here, not {type_name(raw)}: {header_of(section)} with {keys}"
            self.notes.add(path, "HP105", wanted)
            return self.blank(section, path, subject)
        settings, tables = keys_of(section), sections_in(section)
        if section in _SUBJECT:
            subject = raw.get(_SUBJECT[section])
        for key in raw:
            if key not in settings and key not in tables:
                self.unknown(section, key, path)
        values: Values = {key: self.value(setting, raw, path, subject) for key, setting in settings.items()}
        for key, name in tables.items():
            values[key] = self.child(name, raw, (*path, key), subject)
        return values

    def blank(self, section: str, path: Path, subject: object) -> Values:
        """What stands in for a section that is no table: nothing more is said about what it lacks."""
        values: Values = {
            key: default_of(setting, subject, Place((*path, key), self.folder, self.notes))
            for key, setting in keys_of(section).items()
        }
        for key, name in sections_in(section).items():
            values[key] = [] if SECTIONS[name].many else self.blank(name, (*path, key), subject)
        return values

    def value(self, setting: Setting, raw: dict[str, Any], path: Path, subject: object) -> object:
        """One setting's value: what is written, or its default."""
        place = Place((*path, setting.key), self.folder, self.notes)
        if setting.key in raw:
            # Of a name that nobody knows that is said, and nothing of what it would mean.
            if isinstance(subject, str) and subject in (*KINDS, *PROTOCOLS) and not setting.fits(subject):
                others = f", only for {', '.join(setting.only)}" if setting.only else ""
                place.bad(Bad("HP205", f"has no meaning for {subject}{others}"))
            try:
                return setting.kind.read(raw[setting.key], place)
            except Bad as bad:
                if not (self.notes.lacks_plugins and bad.code == "HP106" and setting.key in _PLUGGED):
                    place.bad(bad)
        elif setting.default is REQUIRED and subject not in setting.but:
            self.notes.add(path, "HP107", f"{setting.key} is missing: {setting.help}")
        return default_of(setting, subject, place)

    def child(self, section: str, raw: dict[str, Any], path: Path, subject: object) -> Values | list[Values]:
        """A sub-table, or all of a list of them."""
        key = SECTIONS[section].key
        if not SECTIONS[section].many:
            return self.table(section, raw.get(key, {}), path, subject)
        elements = raw.get(key, [])
        if not isinstance(elements, list):
            wanted = f"is written {header_of(section)}: a list of tables"
            self.notes.add(path, "HP105", f"{wanted}, not {type_name(elements)}")
            elements = [elements] if isinstance(elements, dict) else []
        elif not elements and SECTIONS[section].needed:
            self.notes.add(path[:-1], "HP107", f"there is no {header_of(section)}: {lower_help(section)}")
        return [self.table(section, element, (*path, index), subject) for index, element in enumerate(elements)]

    def unknown(self, section: str, key: str, path: Path) -> None:
        """A key that nothing reads: at the wrong place, or misspelt."""
        known = self.known(section)
        near = suggest(key, known, {word: ours for word, ours in _ELSEWHERE if ours in known})
        hint = near
        elsewhere = [header_of(setting.section) for setting in SETTINGS if setting.key == key]
        elsewhere += [header_of(name) for name, row in SECTIONS.items() if row.key == key]
        if elsewhere:
            hint = f"; it belongs in {' or '.join(elsewhere)}" + near.replace(";", ", or", 1)
        elif key in TWEMPROXY:
            hint = f"; of twemproxy; here: {TWEMPROXY[key]}"
        self.notes.add((*path, key), "HP104", f"unknown key{hint}")

    @staticmethod
    def known(section: str) -> list[str]:
        """All that may be written in a section."""
        return [*keys_of(section), *sections_in(section)]


def lower_help(section: str) -> str:
    """A section's line of help, as the end of a sentence."""
    text = SECTIONS[section].help
    return text[0].lower() + text[1:].rstrip(".")


def default_of(setting: Setting, subject: object, place: Place) -> object:
    """A setting's default as the model holds it; None where there is none."""
    default = setting.default
    if isinstance(default, ByProtocol):
        default = default.of(subject)
    if default is REQUIRED or default is None:
        return None
    return setting.kind.read(default, place) if default != "" else ""
