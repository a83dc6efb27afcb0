"""What a configuration says of tables of SQL servers, as records of model.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IdDate:
    """Where the date is in a key that is a number: ((number >> shift) + epoch) / per_second is unix time.

    utc_offset_h  of the clock by which a table begins, in hours east of Greenwich
    """

    shift: int
    epoch: int
    per_second: int = 1
    utc_offset_h: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """The table of a SQL server that holds keys and values, and its columns; "" is a column that it does not have.

    `schema` is the database that the name was written with, "" for the connection's own. `id` is an integer column by
    which all rows can be walked; `flags`, `expires` and `version` are parts of an item (docs/mysql.md).
    `fields` are the columns of a value that is an object; `value` is "" then.
    `databases`, `tables` and `date` make many tables of one, whose name has numbers then (config/table_split.py);
    databases 0: one at each server.
    """

    name: str
    key: str
    value: str
    schema: str = ""
    flags: str = ""
    expires: str = ""
    version: str = ""
    id: str = ""
    fields: tuple[str, ...] = ()
    databases: int = 0
    tables: int = 1
    date: IdDate | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The columns that a value is kept in."""
        return self.fields or (self.value,)

    @property
    def label(self) -> str:
        """As it is written in the file: "user.profile"."""
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A table in which somebody writes the time at the writer, again and again: how old it is at a reader is its lag.

    time   the column of it, in UTC: a text as ISO 8601 has it, DATETIME, TIMESTAMP, or unix time as a number
    where  which rows count: columns that have this value; of several the latest time counts
    """

    name: str
    time: str
    schema: str = ""
    where: tuple[tuple[str, str | int], ...] = ()
