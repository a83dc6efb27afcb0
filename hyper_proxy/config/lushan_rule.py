"""The kind of the key lushan_db: the rule by which the proxy finds the database of a key.

    lushan_db = 3                                                every key is in database 3
    lushan_db = { hash = "crc32a", count = 8 }                   hash(key) modulo count
    lushan_db = { separator = ":", map = { user = 1, feed = 2 }, default = 0 }
                                                                 by the text before the first separator
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hyper_proxy.config.ask import named_hash_fault
from hyper_proxy.config.checks import Integer, Known, Text
from hyper_proxy.config.model import LushanDb, LushanFixed, LushanHashed, LushanPrefixed
from hyper_proxy.config.notes import suggest
from hyper_proxy.config.place import Bad, Place, wrong_type

MAX_DB = 2**31 - 1
"""Lushan reads the number with atoi, into an int."""

_DB = Integer(0, MAX_DB)


@dataclass(frozen=True, slots=True)
class LushanRule:
    """An integer, or a table with hash and count, or a table with separator, map and, optionally, default."""

    accepts: str = (
        'integer, or { hash = "crc32a", count = 8 }, or { separator = ":", map = { user = 1, feed = 2 }, '
        "default = 0 }; without default, keys of other prefixes are refused"
    )

    def read(self, value: object, place: Place) -> LushanDb:
        try:
            return self._read(value, place)
        except Bad as bad:
            # Noted here, so that the level is not said to lack a rule.
            place.bad(bad)
            return LushanFixed(0)

    @staticmethod
    def _read(value: object, place: Place) -> LushanDb:
        if isinstance(value, int) and not isinstance(value, bool):
            return LushanFixed(_DB.read(value, place))
        if not isinstance(value, dict):
            raise wrong_type(value, "an integer or a table")
        form = next((form for form in _FORMS if form[0] in value), tuple(key for form in _FORMS for key in form))
        for key in value:
            if key not in form:
                place.bad(Bad("HP104", f"unknown key in this rule{suggest(key, form)}"), key)
        if form not in _FORMS:
            raise Bad("HP107", "a rule is a number, or has hash and count, or separator and map")
        return _FORMS[form](value, place)


def _hashed(value: dict[str, Any], place: Place) -> LushanDb:
    if "count" not in value:
        raise Bad("HP107", "count is missing: how many databases there are")
    name = place.part(value, "hash", Known(named_hash_fault, "name of a hash"), "")
    return LushanHashed(name, place.part(value, "count", Integer(1, MAX_DB), 1))


def _prefixed(value: dict[str, Any], place: Place) -> LushanDb:
    dbs = value.get("map")
    if not isinstance(dbs, dict) or not dbs:
        raise Bad("HP107", "map is missing: a table of prefix = database")
    separator = place.part(value, "separator", Text(r"[!-~]", "one visible ASCII character"), ":")
    default = place.part(value, "default", _DB, None) if "default" in value else None
    rows = place.below("map")
    for prefix in dbs:
        if separator in prefix:
            rows.bad(Bad("HP106", f"the prefix holds the separator '{separator}', so no key can have it"), prefix)
    return LushanPrefixed(separator, tuple((prefix, rows.part(dbs, prefix, _DB, 0)) for prefix in dbs), default)


_FORMS = {("hash", "count"): _hashed, ("separator", "map", "default"): _prefixed}
"""The keys of each kind of rule; the first one tells the kind."""
