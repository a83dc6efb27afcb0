"""Reading `table`, `where` and `heartbeat`: which table of a SQL server holds keys and values, and in which columns.

    table = { name = "user.profile", key = "uid", value = "body", expires = "until" }
    table = { name = "user.profile", key = "uid", value = ["name", "city", "age"] }
    where = { deleted = 0, kind = "profile" }
    heartbeat = { name = "percona.heartbeat", time = "ts", where = { server_id = 1 } }

What is read here stands in statements later, as an identifier, for which no server takes a parameter. So a name is a
plain word: what would have to be escaped is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hyper_proxy.config.checks import Integer
from hyper_proxy.config.model import Heartbeat, IdDate, Table
from hyper_proxy.config.notes import suggest
from hyper_proxy.config.place import Bad, Place, wrong_type
from hyper_proxy.config.table_split import MAX_SLOTS, PLACEHOLDER

INT64_MAX = 2**63 - 1

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,63}|[0-9][A-Za-z0-9_$]{0,62}[A-Za-z_$]")
_WORDS = "a name of at most 64 letters, digits, '_' and '$', and not only digits"
_PATTERN = f"{_WORDS}; {{db:02}}, {{table:02}}, {{slot:02}}, {{yyyy}}, {{yy}}, {{mm}} and {{dd}} stand for numbers"
_NEEDED = ("name", "key", "value")
_COLUMNS = ("key", "flags", "expires", "version", "id")
_NUMBERS = (("databases", Integer(1, MAX_SLOTS), 0), ("tables", Integer(1, MAX_SLOTS), 1))
_KEYS = ("name", *_COLUMNS, "value", *(key for key, *_ in _NUMBERS), "date")
_DATE = {
    "shift": Integer(0, 62), "epoch": Integer(-INT64_MAX, INT64_MAX), "per_second": Integer(1, 10**9),
    "utc_offset_h": Integer(-14, 14),
}  # fmt: skip
_NOTHING = Table("", "", "")


@dataclass(frozen=True, slots=True)
class TableRule:
    """A table of toml with the names of a table of SQL and of its columns."""

    accepts: str = (
        '{ name = "table" or "database.table", key = "column", value = "column" or a list of columns }, the columns '
        "flags, expires, version and id where the table has them, and where there are many tables, databases, tables "
        "and date = { shift, epoch, per_second, utc_offset_h }"
    )

    def read(self, value: object, place: Place) -> Table:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        _know(value, _KEYS, place)
        missing = [key for key in _NEEDED if key not in value]
        if missing:
            place.bad(Bad("HP107", f"{' and '.join(missing)} missing: the table must have {', '.join(_NEEDED)}"))
            return _NOTHING  # so that the level is not said to lack a table
        schema, name = _read_name(value["name"], place)
        columns = {key: _name(value[key], key, place) for key in _COLUMNS if key in value}
        listed = value["value"] if isinstance(value["value"], list) else None
        if listed == []:
            place.bad(Bad("HP106", "the list is empty: a value has at least one column"), "value")
        inside = tuple(_name(text, "value", place, at) for at, text in enumerate(listed or ()))
        columns["value"] = "" if listed is not None else _name(value["value"], "value", place)
        _name_once(columns, inside, place)
        databases, tables = (place.part(value, *row) if row[0] in value else row[2] for row in _NUMBERS)
        day = _read_date(value["date"], place.below("date")) if "date" in value else None
        if databases * tables > MAX_SLOTS:
            text = f"{databases} databases of {tables} tables are more than {MAX_SLOTS} tables"
            place.bad(Bad("HP106", text), "tables")
            databases, tables = 0, 1
        whole = {"name": name, "schema": schema, **columns}
        return Table(**whole, fields=inside, databases=databases, tables=tables, date=day)


def _read_name(value: object, place: Place) -> tuple[str, str]:
    """Database and table; a name that is none is noted, and "" then."""
    if not isinstance(value, str):
        return "", _name(value, "name", place)
    schema, dot, name = value.rpartition(".")
    parts = [schema, name] if dot else [name]
    for part in parts:
        if not _NAME.fullmatch(PLACEHOLDER.sub(lambda found: "0" * int(found[2] or 1), part)):
            place.bad(Bad("HP106", f"{part!r} is not {_PATTERN}"), "name")
            return "", ""
    return schema, name


def _read_date(value: object, place: Place) -> IdDate:
    if not isinstance(value, dict):
        place.bad(wrong_type(value, "a table"))
        return IdDate(0, 0)
    _know(value, tuple(_DATE), place)
    missing = [key for key in ("shift", "epoch") if key not in value]
    if missing:
        text = f"{' and '.join(missing)} missing: ((number >> shift) + epoch) / per_second is unix time"
        place.bad(Bad("HP107", text))
        return IdDate(0, 0)
    return IdDate(**{key: place.part(value, key, kind, 1) for key, kind in _DATE.items() if key in value})


def _know(value: dict[str, Any], keys: tuple[str, ...], place: Place) -> None:
    for key in value:
        if key not in keys:
            place.bad(Bad("HP104", f"unknown key in this table{suggest(key, keys)}"), key)


def _name_once(columns: dict[str, str], inside: tuple[str, ...], place: Place) -> None:
    # An integer key may be what the rows are walked by.
    used = [text for key, text in columns.items() if text and not (key == "id" and text == columns["key"])]
    counts = Counter(text.lower() for text in (*used, *inside) if text)
    for column in [column for column, count in counts.items() if count > 1]:
        place.bad(Bad("HP106", f"the column '{column}' is named for more than one purpose"))


@dataclass(frozen=True, slots=True)
class WhereRule:
    """A table of toml: column = value."""

    accepts: str = '{ column = "text" or integer, ... }'

    def read(self, value: object, place: Place) -> tuple[tuple[str, str | int], ...]:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        return tuple((_name(column, column, place), _fixed(wanted, column, place)) for column, wanted in value.items())


@dataclass(frozen=True, slots=True)
class HeartbeatRule:
    """A table of toml that names a table of SQL with times; an empty one names none."""

    accepts: str = (
        '{} or { name = "table" or "database.table", time = "column", where = { column = "text" or integer, ... } }'
    )

    def read(self, value: object, place: Place) -> Heartbeat | None:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        if not value:
            return None
        _know(value, ("name", "time", "where"), place)
        missing = [key for key in ("name", "time") if key not in value]
        if missing:
            place.bad(Bad("HP107", f"{' and '.join(missing)} missing: which column has the time, and of which table"))
            return Heartbeat("", "")
        if PLACEHOLDER.search(str(value["name"])):
            place.bad(Bad("HP106", "there is one such table, so no numbers stand in its name"), "name")
        schema, name = _read_name(value["name"], place)
        where: tuple[tuple[str, str | int], ...] = ()
        try:
            where = WhereRule().read(value.get("where", {}), place.below("where"))
        except Bad as bad:
            place.bad(bad, "where")
        return Heartbeat(name, _name(value["time"], "time", place), schema, where)


def _name(text: object, key: str, place: Place, *index: int) -> str:
    if not isinstance(text, str):
        place.bad(wrong_type(text, "a string"), key, *index)
        return ""
    if not _NAME.fullmatch(text):
        place.bad(Bad("HP106", f"{text!r} is not {_WORDS}"), key, *index)
        return ""
    return text


def _fixed(value: object, column: str, place: Place) -> str | int:
    if isinstance(value, int) and not isinstance(value, bool) and -INT64_MAX - 1 <= value <= INT64_MAX:
        return value
    if isinstance(value, str):
        return value
    place.bad(Bad("HP106", "a string or an integer of 64 bits is wanted here"), column)
    return 0
