"""One table out of many: over which databases and tables the rows of a level are spread, and where each of them is.

    table = { name = "user_{db:02}.profile_{table:03}", databases = 4, tables = 8, key = "uid", value = "body" }
    table = { name = "feed_{db}.status_{yy}{mm}", databases = 4, date = { shift = 22, epoch = 515483463 }, ... }

Keys are placed over slots as over servers, by the hash and the distribution of the level. Slot s is table s mod tables
of database s / tables. Each server has as many databases: of 4 databases, 0 and 1 are at the first of two servers.
With `date` a slot has a table for each year, month or day, which the number that a key is says:
((number >> shift) + epoch) / per_second is unix time, as in the ids of Weibo and in snowflakes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import IdDate, Level, Server, Table

MAX_SLOTS = 4096  # every worker has the statements of each
PLACEHOLDER = re.compile(r"\{(?:(db|table|slot)(?::0([1-9]))?|(yyyy|yy|mm|dd))\}")
DATED = re.compile(r"\{(?:yyyy|yy|mm|dd)\}")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_DAY = date(2099, 12, 31)  # its numbers are as long as those of any other

_WIDTHS = {"yyyy": 4, "yy": 2, "mm": 2, "dd": 2}
_ID = re.compile(rb"0|[1-9][0-9]{0,18}")


def slot_count(table: Table, servers: int) -> int:
    """Over how many slots the keys are placed."""
    return (table.databases or servers) * table.tables


def is_split(table: Table) -> bool:
    """Are there more slots than servers, or may there be?"""
    return bool(table.databases) or table.tables > 1


def placed(level: Level) -> tuple[Server, ...]:
    """What the keys of a level are placed over: its servers; its masters, by their names; or its slots, which are
    called 0, 1 ... A redis cluster has none of these: it places its keys itself."""
    if level.is_found_out:
        return tuple(Server(name=name) for name in level.masters)
    if level.table is None or not is_split(level.table):
        return level.servers
    return tuple(Server(name=str(slot)) for slot in range(slot_count(level.table, len(level.servers))))


@dataclass(frozen=True, slots=True)
class Home:
    """Servers that have all slots of some time; each has as many. writers: by position, `servers` if there are none."""

    servers: tuple[Server, ...]
    writers: tuple[Server, ...]


def homes_of(level: Level) -> list[Home]:
    """That of all years of which nothing is said, then those of `years`."""
    eras = [Home(era.servers, era.writers or era.servers) for _, era in level.years]
    return [Home(level.servers, level.writers or level.servers), *eras]


def home_at(level: Level, day: date | None) -> int:
    """The index of the home of a day's rows; None: where there are no dates."""
    eras = enumerate(level.years, 1) if day is not None else ()
    return next((at for at, (_, era) in eras if day is not None and era.first <= day.year <= era.last), 0)


def server_at(level: Level, slot: int, home: Home | None = None) -> int:
    """The index of the server that has a slot, among those of a home, or of the level."""
    if level.table is None or not is_split(level.table):
        return slot
    servers = len(home.servers) if home else len(level.servers)
    return slot * servers // slot_count(level.table, len(level.servers))


def table_at(table: Table, slot: int, day: date | None = None) -> Table:
    """The table of a slot; `day`: of a dated one."""
    database, number = divmod(slot, table.tables)
    numbers = {"db": database, "table": number, "slot": slot}
    if day is not None:
        numbers |= {"yyyy": day.year, "yy": day.year % 100, "mm": day.month, "dd": day.day}
    return replace(table, schema=_fill(table.schema, numbers), name=_fill(table.name, numbers))


def table_of(level: Level, slot: int, key: bytes) -> Table | None:
    """The table of a key, where a level has many; else None. Raises ClientError for a key without a date."""
    table = level.table
    if table is None or not (is_split(table) or table.date):
        return None
    return table_at(table, slot, day_of(table, key) if table.date else None)


def day_of_key(level: Level, key: bytes) -> date | None:
    """The first day of a key's table; None where keys have no dates. Raises ClientError for a key that should."""
    return day_of(level.table, key) if level.table is not None and level.table.date else None


def _fill(pattern: str, numbers: Mapping[str, int]) -> str:
    def number(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        if name not in numbers:
            return found[0]
        return f"{numbers[name]:0{_WIDTHS.get(name) or found[2] or 1}}"

    return PLACEHOLDER.sub(number, pattern)


def period(table: Table, day: date) -> date:
    """The first day of the time whose rows are in one table with those of this day."""
    month = day.month if "{mm}" in table.name else 1
    return date(day.year, month, day.day if "{dd}" in table.name else 1)


def day_of(table: Table, key: bytes) -> date:
    """The first day of the table that a key belongs to. Raises ClientError for a key that has no date."""
    rule = table.date or IdDate(0, 0)
    if _ID.fullmatch(key) is None:
        raise ClientError(f"table {table.label} is chosen by the date in the key, which must be a number")
    seconds = ((int(key) >> rule.shift) + rule.epoch) // rule.per_second
    try:
        day = (EPOCH + timedelta(seconds=seconds, hours=rule.utc_offset_h)).date()
    except OverflowError:
        day = date.min
    if not 2000 <= day.year < 2100:  # for which two digits of the year suffice
        raise ClientError(f"table {table.label} is chosen by the date in the key, and this one has none")
    return period(table, day)


def pattern_of(name: str) -> tuple[str, re.Pattern[str]]:
    """The tables of a dated name: for LIKE, and as an expression with the groups yyyy, yy, mm and dd."""
    like = DATED.sub(lambda found: "_" * _WIDTHS[found[0][1:-1]], re.sub(r"[%_]", r"\\\g<0>", name))
    parts = re.split(r"(\{(?:yyyy|yy|mm|dd)\})", name)
    return like, re.compile("".join(
        rf"(?P<{part[1:-1]}>[0-9]{{{_WIDTHS[part[1:-1]]}}})" if DATED.fullmatch(part) else re.escape(part)
        for part in parts
    ))  # fmt: skip


def read_day(found: re.Match[str]) -> date | None:
    """The first day of a table whose name was recognized by `pattern_of`; None for one that no day has."""
    numbers = {name: int(text) for name, text in found.groupdict().items()}
    year = numbers.get("yyyy", 2000 + numbers.get("yy", 0))
    try:
        return date(year, numbers.get("mm", 1), numbers.get("dd", 1))
    except ValueError:
        return None


def split_faults(level: Level) -> Iterator[str]:
    """What contradicts itself in the names and numbers of a level's tables."""
    table = level.table
    if table is None or not table.name:
        return
    servers = len(level.servers)
    slots = slot_count(table, servers)
    if table.databases % servers:
        yield f"databases ({table.databases}) must be a multiple of the servers ({servers}): each has as many"
        return
    for text in ("db", "table", "slot"):
        if not is_split(table) and f"{{{text}" in table.label:
            yield f"{{{text}}} stands for a number where there are several databases or tables: say how many"
            return
    if slots > MAX_SLOTS:
        yield f"databases and tables make {slots} tables, more than {MAX_SLOTS}"
        return
    if is_split(table) and any(server.weight != 1 for server in level.servers):
        yield "weights have no effect where there are databases or tables: each server has as many"
    seen: dict[tuple[str, str], int] = {}
    for slot in range(slots):
        at = table_at(table, slot, LONGEST_DAY)
        other = seen.setdefault((level.servers[server_at(level, slot)].address, at.label.lower()), slot)
        if other != slot and is_split(table):
            yield f"the name must tell tables apart, by {{db}}, {{table}} or {{slot}}: {at.label} would be two of them"
            return
    yield from _date_faults(table)


def years_faults(level: Level) -> Iterator[tuple[str, str]]:
    """What contradicts itself in the servers of years: which of them, and why."""
    table = level.table
    said: dict[int, str] = {}
    for years, era in level.years:
        if table is not None and table.name and table.date is None:
            yield years, "rows have years where tables are chosen by the date in the key: table has no date"
            return
        for year in range(era.first, era.last + 1):
            if year in said:
                yield years, f"{year} is also one of {said[year]}"
                break
            said[year] = years
        if table is None or not era.servers:
            continue
        count, usual = len(era.servers), len(level.servers)
        if (table.databases % count) if table.databases else count != usual:
            needed = f"databases ({table.databases}) must be a multiple of them" if table.databases else f"not {usual}"
            yield years, f"there are {count} servers, {needed}: each has as many of the databases"
            continue
        home = Home(era.servers, era.servers)
        named: dict[tuple[str, str], int] = {}
        for slot in range(slot_count(table, usual)):
            at = table_at(table, slot, LONGEST_DAY).label
            if named.setdefault((era.servers[server_at(level, slot, home)].address, at.lower()), slot) != slot:
                yield years, f"the name must tell tables apart: {at} would be two of them at one server"
                break


def _date_faults(table: Table) -> Iterator[str]:
    found = {text[1:-1] for text in DATED.findall(table.name)}
    if DATED.search(table.schema):
        yield "{yyyy}, {yy}, {mm} and {dd} may stand in the name of the table, not in that of its database"
    elif bool(found) != (table.date is not None):
        yield "date goes with {yyyy} or {yy}, {mm} and {dd} in the name: one of the two is missing"
    elif found and (not found & {"yyyy", "yy"} or ("dd" in found and "mm" not in found)):
        yield "a date begins with {yyyy} or {yy}, and {dd} takes {mm}: tables of different times would be one"
    elif found and table.id and table.id != table.key:
        yield "where tables are chosen by date, rows are walked by the key: id must be its column"
