"""What a table lacks a column for, and so refuses: known from the configuration, before any server is asked."""

from __future__ import annotations

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Table
from hyper_proxy.storage.items import Put


def check_put(table: Table, put: Put) -> None:
    """Raises ClientError when the table has no column for a part of it."""
    if put.flags and not table.flags:
        raise ClientError(f"table {table.label} has no column for flags (table.flags)")
    check_time(table, put.expires_at)


def check_time(table: Table, expires_at: float | None) -> None:
    """The same for a time of expiry alone."""
    if expires_at is not None and not table.expires:
        raise ClientError(f"table {table.label} has no column for a time of expiry (table.expires)")


def check_walk(table: Table) -> None:
    """Raises ClientError when nothing orders its rows."""
    if not table.id:
        raise ClientError(f"table {table.label} has no integer column to walk its keys by (table.id)")
