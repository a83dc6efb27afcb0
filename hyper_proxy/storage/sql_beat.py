"""How far a reader is behind, by a table in which somebody writes the time at the writer (docs/mysql.md)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hyper_proxy.config.model import Heartbeat
from hyper_proxy.conn_pool.sql_connection import SqlConnection
from hyper_proxy.stats.classes import ADMIN
from hyper_proxy.storage.sql_text import quote

IN_UTC = "SET time_zone = '+00:00'"  # so TIMESTAMP columns are told like the others

_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Beat:
    """What is asked of every reader of a level."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self.table = ".".join(name for name in (heartbeat.schema, heartbeat.name) if name)
        self.values = [value for _, value in heartbeat.where]
        named = ".".join(quote(name) for name in (heartbeat.schema, heartbeat.name) if name)
        where = " AND ".join(f"{quote(column)} = %s" for column, _ in heartbeat.where)
        self.text = f"SELECT MAX({quote(heartbeat.time)}), UNIX_TIMESTAMP(NOW(6)) FROM {named}"
        self.text += f" WHERE {where}" if where else ""

    def __call__(self, connection: SqlConnection) -> tuple[float | None, str]:
        """The age of the latest time by the reader's clock, in seconds, and why there is none. Raises SqlError."""
        connection.subject = f"table {self.table}: "
        if IN_UTC not in connection.memo:
            connection.execute(IN_UTC, (), ADMIN)
            connection.memo[IN_UTC] = True
        ((last, now),) = connection.execute(self.text, self.values, ADMIN)
        if last is None:
            return None, f"no time is in the heartbeat table {self.table}"
        at = unix_time(str(last, "utf-8", "replace"))
        if at is None:
            return None, f"the heartbeat table {self.table} has {last[:40]!r}, which is no time"
        return max(0.0, float(now or 0) - at), ""


def unix_time(text: str) -> float | None:
    """Of a number, or of ISO 8601, which is UTC where it says nothing else; None for any other text."""
    if _NUMBER.fullmatch(text):
        return float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
