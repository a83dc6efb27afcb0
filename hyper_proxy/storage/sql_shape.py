"""What the configured table really is, asked over each new connection: codecs of its columns, and is the key unique?

A table that is not as the configuration says fails the requests with an error that says what it should be; nothing is
written to it before.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyper_proxy.config.model import Table
from hyper_proxy.conn_pool.sql_connection import SqlConnection
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.storage.numbers import INT64_MAX
from hyper_proxy.storage.sql_columns import Codec, Column, Misfit, Times, check_number, key_codec, times
from hyper_proxy.storage.sql_value import Objects, OneColumn, Value

Where = tuple[tuple[str, str | int], ...]  # columns that are the same in every row

# Schema and table as constants: only so a server does not look through all of its tables.
ENGINE = (
    "SELECT t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t"
    " LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s"
)
COLUMNS = (
    "SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, COLLATION_NAME, IS_NULLABLE, EXTRA, COLUMN_DEFAULT IS NOT NULL"
    " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
UNIQUE = (
    "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0"
)
FLAGS_MAX = 127  # the least that a column for flags must hold; what a value's flags need more of, the server refuses


@dataclass(frozen=True, slots=True)
class Shape:
    """How to write to the table and read from it.

    blind: an INSERT that finds its key there may change that row, for no other row can be in its way.
    """

    key: Codec
    value: Value
    expires: Times | None
    blind: bool


def shape_of(connection: SqlConnection, table: Table, where: Where) -> Shape:
    """The table's shape; asked for once a connection. Raises SqlError."""
    connection.subject = f"table {table.label}: "
    kept: Shape | None = connection.memo.get((table, where))
    if kept is None:
        try:
            kept = _examine(connection, table, where)
        except Misfit as misfit:
            raise connection.error("schema", f"table {table.label}: {misfit}") from None
        connection.memo[table, where] = kept
    return kept


def _examine(connection: SqlConnection, table: Table, where: Where) -> Shape:
    name = (table.schema or connection.node.database, table.name)
    for engine, transactions in connection.execute(ENGINE, name, ADMIN):
        if engine is not None and transactions != b"YES":
            raise Misfit(f"its engine, {engine.decode()}, has no transactions; InnoDB has")
    columns = {}
    place = f"instance '{connection.node.instance}', {connection.node.where}, table {table.label}: "
    for row in connection.execute(COLUMNS, name, ADMIN):
        text, kind, full, collation, nullable, extra, default = (str(field or b"", "utf-8") for field in row)
        columns[text.lower()] = Column(
            text, kind.lower(), full.lower(), collation.lower(), nullable == "YES", place,
            has_default=nullable == "YES" or default == "1" or "auto_increment" in extra.lower(),
            is_generated="generated" in extra.lower().replace("default_generated", ""),
        )  # fmt: skip
    if not columns:
        raise Misfit("there is none of this name, or the user may not see it")

    def column(wanted: str) -> Column:
        if wanted.lower() not in columns:
            raise Misfit(f"it has no column '{wanted}'; there are {', '.join(sorted(columns))}")
        return columns[wanted.lower()]

    if table.flags:
        check_number(column(table.flags), FLAGS_MAX)
    if table.version:
        check_number(column(table.version), INT64_MAX)
    if table.id:
        check_number(column(table.id), FLAGS_MAX)
    for fixed, value in where:
        if column(fixed).is_integer is not isinstance(value, int):
            raise Misfit(f"{column(fixed).label} is not of the type of the value that `where` gives it")
    indexes: dict[str, list[str]] = {}
    for index, part, prefix in connection.execute(UNIQUE, name, ADMIN):
        # A prefix is unique itself, and no column: two keys may begin alike.
        text = str(part or b"", "utf-8").lower() + ("" if prefix is None else " (prefix)")
        indexes.setdefault(str(index or b"", "utf-8"), []).append(text)
    blind = _is_blind(indexes, table, where)
    expires = times(column(table.expires)) if table.expires else None
    several = [(field, column(field)) for field in table.fields]
    columns_of_value = Objects(several) if several else OneColumn(column(table.value))
    return Shape(key_codec(column(table.key)), columns_of_value, expires, blind)


def _is_blind(indexes: dict[str, list[str]], table: Table, where: Where) -> bool:
    """Raises Misfit when one key may have several rows, or `id` several of one number."""
    key = table.key.lower()
    fixed = {name.lower() for name, _ in where}
    own = [set(parts) for parts in indexes.values() if key in parts and set(parts) <= {key} | fixed]
    if not own:
        also = f", or on it and columns of `where` ({', '.join(sorted(fixed))})" if fixed else ""
        raise Misfit(f"there must be a unique index on the whole column '{table.key}'{also}")
    if table.id and [table.id.lower()] not in indexes.values():
        raise Misfit(f"there must be a unique index on the column '{table.id}', by which rows are walked")
    written = {name.lower() for name in (*table.values, table.flags, table.expires, table.version) if name}
    others = [parts for parts in indexes.values() if set(parts) not in own]
    in_the_way = any(part.removesuffix(" (prefix)") in written | {key} | fixed for parts in others for part in parts)
    return not in_the_way and any(parts == {key} | fixed for parts in own)
