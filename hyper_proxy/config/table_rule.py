"""Reading `table` and `where`: which table of a SQL server holds keys and values, and in which columns.

    table = { name = "user.profile", key = "uid", value = "body", expires = "until" }
    table = { name = "user.profile", key = "uid", value = ["name", "city", "age"] }
    where = { deleted = 0, kind = "profile" }

What is read here stands in statements later, as an identifier, for which no server takes a parameter. So a name is a
plain word: what would have to be escaped is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from hyper_proxy.config.checks import Bad, Place, wrong_type
from hyper_proxy.config.model import Table
from hyper_proxy.config.notes import suggest

INT64_MAX = 2**63 - 1

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,63}|[0-9][A-Za-z0-9_$]{0,62}[A-Za-z_$]")
_WORDS = "a name of at most 64 letters, digits, '_' and '$', and not only digits"
_KEYS = tuple(field.name for field in fields(Table) if field.name not in ("schema", "fields"))
_NEEDED = ("name", "key", "value")
_NOTHING = Table("", "", "")


@dataclass(frozen=True, slots=True)
class TableRule:
    """A table of toml with the names of a table of SQL and of its columns."""

    accepts: str = (
        '{ name = "table" or "database.table", key = "column", value = "column" or a list of columns }, and the '
        "columns flags, expires, version and id where the table has them"
    )

    def read(self, value: object, place: Place) -> Table:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        for key in value:
            if key not in _KEYS:
                place.bad(Bad("HP104", f"unknown key in this table{suggest(key, _KEYS)}"), key)
        missing = [key for key in _NEEDED if key not in value]
        if missing:
            place.bad(Bad("HP107", f"{' and '.join(missing)} missing: the table must have {', '.join(_NEEDED)}"))
            return _NOTHING  # so that the level is not said to lack a table
        schema, dot, name = str(value["name"]).rpartition(".")
        names: dict[str, Any] = {**value, "name": name if isinstance(value["name"], str) else value["name"]}
        if dot:
            names["schema"] = schema
        listed = names.pop("value") if isinstance(names["value"], list) else None
        read = {key: _name(text, key, place) for key, text in names.items() if key in (*_KEYS, "schema")}
        inside = () if listed is None else tuple(_name(text, "value", place, at) for at, text in enumerate(listed))
        if inside != () or listed is None:
            read.setdefault("value", "")
        else:
            place.bad(Bad("HP106", "the list is empty: a value has at least one column"), "value")
            return _NOTHING
        # An integer key may be what the rows are walked by.
        columns = [
            text for key, text in read.items()
            if key not in ("name", "schema") and text and not (key == "id" and text == read["key"])
        ] + [text for text in inside if text]  # fmt: skip
        for column in {column.lower() for column in columns if [c.lower() for c in columns].count(column.lower()) > 1}:
            place.bad(Bad("HP106", f"the column '{column}' is named for more than one purpose"))
        return Table(**read, fields=inside)


@dataclass(frozen=True, slots=True)
class WhereRule:
    """A table of toml: column = value."""

    accepts: str = '{ column = "text" or integer, ... }'

    def read(self, value: object, place: Place) -> tuple[tuple[str, str | int], ...]:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        return tuple((_name(column, column, place), _fixed(wanted, column, place)) for column, wanted in value.items())


def _name(text: object, key: str, place: Place, *index: int) -> str:
    below = "name" if key == "schema" else key
    if not isinstance(text, str):
        place.bad(wrong_type(text, "a string"), below, *index)
        return ""
    if not _NAME.fullmatch(text):
        place.bad(Bad("HP106", f"{text!r} is not {_WORDS}"), below, *index)
        return ""
    return text


def _fixed(value: object, column: str, place: Place) -> str | int:
    if isinstance(value, int) and not isinstance(value, bool) and -INT64_MAX - 1 <= value <= INT64_MAX:
        return value
    if isinstance(value, str):
        return value
    place.bad(Bad("HP106", "a string or an integer of 64 bits is wanted here"), column)
    return 0
