"""Reading `years`: which servers have the rows whose keys are dated so.

    years = { "2009-2012" = { servers = ["10.0.1.7:3306"], writers = ["10.0.1.8:3306"] }, "2013" = { servers = [...] } }
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hyper_proxy.config.addresses import read_server
from hyper_proxy.config.model import Era, Server
from hyper_proxy.config.notes import suggest
from hyper_proxy.config.place import Bad, Place, wrong_type

FIRST, LAST = 2000, 2099  # as table_split.py knows dates
_YEARS = re.compile(r"(20[0-9]{2})(?:-(20[0-9]{2}))?")
_KEYS = ("servers", "writers")


@dataclass(frozen=True, slots=True)
class YearsRule:
    """A table of toml: years = { servers, writers }."""

    accepts: str = '{ "2013" or "2009-2012" = { servers = [...], writers = [...] }, ... }'

    def read(self, value: object, place: Place) -> tuple[tuple[str, Era], ...]:
        if not isinstance(value, dict):
            raise wrong_type(value, "a table")
        return tuple((years, self._era(years, inner, place)) for years, inner in value.items())

    def _era(self, years: str, value: object, place: Place) -> Era:
        found = _YEARS.fullmatch(years)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (FIRST, FIRST)
        if found is None or last < first:
            place.bad(Bad("HP106", f"{years!r} is no year from {FIRST} to {LAST}, and no years such as \"2009-2012\""))
        if not isinstance(value, dict):
            place.bad(wrong_type(value, "a table"), years)
            return Era(first, last, ())
        for key in value:
            if key not in _KEYS:
                place.bad(Bad("HP104", f"unknown key in this table{suggest(key, _KEYS)}"), years, key)
        servers, writers = (_servers(value.get(key, []), (years, key), place) for key in _KEYS)
        if not servers:
            place.bad(Bad("HP107", "servers missing: who has the rows of these years"), years)
        elif writers and len(writers) != len(servers):
            text = f"there are {len(servers)} servers and {len(writers)} writers: each server has its writer"
            place.bad(Bad("HP106", text), years, "writers")
        return Era(first, last, servers, writers)


def _servers(value: object, path: tuple[str, str], place: Place) -> tuple[Server, ...]:
    if not isinstance(value, list):
        place.bad(wrong_type(value, "an array"), *path)
        return ()
    found = []
    for at, text in enumerate(value):
        server = Server()  # of a text that can not be read
        try:
            if not isinstance(text, str):
                raise wrong_type(text, "a string")
            server = read_server(text)
        except ValueError as error:
            place.bad(Bad("HP110", str(error)), *path, at)
        except Bad as bad:
            place.bad(bad, *path, at)
        found.append(server)
    return tuple(found)
