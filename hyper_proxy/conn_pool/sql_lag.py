"""How far a reader is behind its writer, asked of it once a second beside the requests, over a connection of its own.

    unknown -> in time        the first answer says at most max_lag_s
    any     -> late           more than that, replication does not run, or no answer: it is not read from
    late    -> in time        three answers in a row of at most half of max_lag_s, so that a server at the edge does not
                              come and go

What the server says is SHOW REPLICA STATUS (https://mariadb.com/kb/en/show-replica-status/,
https://dev.mysql.com/doc/refman/8.4/en/show-replica-status.html); of several sources the one that lags most
counts. Where the level has a heartbeat table, that is read instead (hyper_proxy/storage/sql_beat.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import gevent

from hyper_proxy.common import log
from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.sql_connection import SqlConnection
from hyper_proxy.conn_pool.sql_error import SYNTAX, SqlError

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.sql_node import SqlNode

EVERY_S = 1.0  # with jitter, so that workers do not ask together
CALM = 3  # answers in a row after which a server that was late is read from again

# MariaDB from 10.5.1, MySQL from 8.0.22, MariaDB and MySQL before: one that it does not know is a syntax error to it.
STATEMENTS = ("SHOW ALL REPLICAS STATUS", "SHOW REPLICA STATUS", "SHOW ALL SLAVES STATUS", "SHOW SLAVE STATUS")
SECONDS = ("Seconds_Behind_Source", "Seconds_Behind_Master")
ERRORS = ("Last_SQL_Error", "Last_IO_Error")

Status = Mapping[str, bytes | None]  # a row by the names of its columns
Ask = Callable[[SqlConnection], tuple[float | None, str]]  # seconds, or why there are none


def read_status(rows: Iterable[Status]) -> tuple[float | None, str]:
    """The seconds that a server lags, and why there are none: then it must not be read from."""
    lags: list[float] = []
    for row in rows:
        seconds = next((row[name] for name in SECONDS if row.get(name) is not None), None)
        if seconds is None:
            errors = [str(row.get(name) or b"", "utf-8", "replace") for name in ERRORS]
            return None, ": ".join(["its replication does not run", *[error for error in errors if error][:1]])
        lags.append(float(seconds))
    return (max(lags), "") if lags else (None, "it is no replica")


class Lag:
    """Of one reader in one worker; beat: asks it, instead of the usual question. `is_late`: it is not read from; that
    is so until the first answer, too."""

    def __init__(self, node: SqlNode, max_lag_s: float, beat: Ask | None) -> None:
        self.node = node
        self.max_lag_s = max_lag_s
        self.beat = beat
        self.seconds = 0.0  # as it was heard last
        self.is_late = True
        self.told = False  # does the log call it late?
        self._known = False  # has there been an answer?
        self._calm = 0
        self._statement = 0
        self._connection: SqlConnection | None = None

    def run(self) -> None:
        """The body of a greenlet that ends with the node."""
        while not self.node.closed:
            if not self.node.out and not self.node.is_backing_off:
                self.heard(*self._ask())
            gevent.sleep(EVERY_S * random.uniform(0.75, 1.25))
        self._drop()

    def heard(self, seconds: float | None, why: str) -> None:
        """Decide by what the server has said; None: nothing that says how far it is."""
        first = not self._known
        self._known = True
        if seconds is not None:
            self.seconds = seconds
            why = f"it is {seconds:g} s behind its writer, max_lag_s is {self.max_lag_s:g}"
        if seconds is None or seconds > self.max_lag_s:
            self._calm = 0
            self.is_late = True
            if not self.told:
                self.told = True
                log.warning("replica.late", **self._where, why=why)
        elif self.is_late:
            self._calm = self._calm + 1 if seconds <= self.max_lag_s / 2 else 0
            if first or self._calm == CALM:
                self.is_late = False
                if self.told:
                    self.told = False
                    log.info("replica.back", **self._where)

    @property
    def _where(self) -> dict[str, object]:
        node = self.node
        return {"instance": node.instance, "node": node.label, "address": node.server.address}

    def _ask(self) -> tuple[float | None, str]:
        try:
            return self._status()
        except BackendError as error:
            self._drop()
            return None, str(error)

    def _status(self) -> tuple[float | None, str]:
        """Raises BackendError."""
        if self._connection is None:
            self._connection = self.node.open_connection()
        if self.beat is not None:
            return self.beat(self._connection)
        while True:
            try:
                return read_status(self._connection.named(STATEMENTS[self._statement]))
            except SqlError as error:
                if error.code != SYNTAX or self._statement == len(STATEMENTS) - 1:
                    raise
                self._statement += 1

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
