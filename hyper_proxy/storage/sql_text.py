"""The text of every statement that a table is used with, made once. Values are parameters (%s) without exception.

Names of the table and its columns come from the configuration, where only plain words are allowed; they are quoted all
the same, for they may be reserved words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hyper_proxy.config.model import Table


def quote(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Texts:
    """Each is followed by the parameters that its comment names; `{keys}` is made of as many %s as there are keys."""

    read: str  # keys, where, now; rows of key, value's columns, [flags], [expires], [version]
    lock: str  # keys, where
    insert: str  # then rows: key, value's columns, [flags], [expires], [version], where
    put: str  # what stands behind the rows of an INSERT that changes rows that are there
    row: str  # one row of an INSERT
    update: str  # value's columns, [flags], [expires], [version], key, where
    expire: str  # expires, keys, where
    delete: str  # keys, where
    delete_live: str  # keys, where, now
    count: str  # where, now
    scan: str  # id, where, now, limit
    clear: str  # where, limit


def texts_of(table: Table, where: Iterable[str]) -> Texts:
    """`where`: the columns that are the same in every row."""
    name = f"{quote(table.schema)}.{quote(table.name)}" if table.schema else quote(table.name)
    key, values = quote(table.key), [quote(column) for column in table.values]
    extra = [quote(column) for column in (table.flags, table.expires, table.version) if column]
    fixed = [quote(column) for column in where]
    also = "".join(f" AND {column} = %s" for column in fixed)
    live = f" AND ({quote(table.expires)} IS NULL OR {quote(table.expires)} = 0 OR {quote(table.expires)} > %s)"
    live = live if table.expires else ""
    read = f"SELECT {', '.join([key, *values, *extra])} FROM {name} WHERE {key} IN ({{keys}}){also}"
    written = [key, *values, *extra, *fixed]
    number = quote(table.id or table.key)
    filled = " OR ".join(f"{value} IS NOT NULL" for value in values)
    whole = f"{key} IS NOT NULL AND ({filled})"
    changed = [*values, *extra]
    new = [f"{column} = VALUES({column})" for column in changed]
    if table.version:
        version = quote(table.version)
        new[-1] = f"{version} = GREATEST(COALESCE({version}, 0) + 1, VALUES({version}))"
    return Texts(
        read=read + live,
        lock=read + " FOR UPDATE",
        insert=f"INSERT INTO {name} ({', '.join(written)}) VALUES ",
        put=f" ON DUPLICATE KEY UPDATE {', '.join(new)}",
        row=f"({', '.join(['%s'] * len(written))})",
        update=f"UPDATE {name} SET {', '.join(f'{column} = %s' for column in changed)} WHERE {key} = %s{also}",
        expire=f"UPDATE {name} SET {quote(table.expires)} = %s WHERE {key} IN ({{keys}}){also}",
        delete=f"DELETE FROM {name} WHERE {key} IN ({{keys}}){also}",
        delete_live=f"DELETE FROM {name} WHERE {key} IN ({{keys}}){also}{live}",
        count=f"SELECT COUNT(*) FROM {name} WHERE {whole}{also}{live}",
        scan=f"SELECT {number}, {key} FROM {name} WHERE {number} > %s AND {whole}{also}{live}"
        f" ORDER BY {number} LIMIT %s",
        clear=f"DELETE FROM {name} WHERE {key} IS NOT NULL{also} LIMIT %s",
    )


def marks(count: int) -> str:
    """%s, %s ..."""
    return ", ".join(["%s"] * count)
