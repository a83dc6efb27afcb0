# cython: language_level=3, annotation_typing=False
"""One connection to a MySQL or MariaDB server: one statement at a time, each with its deadline.

PyMySQL logs in and quotes; the socket is ours (sql_wire.py), and so is the reading of answers (sql_answer.py). Columns
come as the bytes that the server sends: text as UTF-8, numbers as decimals. Values go as parameters only, quoted by the
driver in one way for every server, since the session's sql_mode is always the same.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

from pymysql.connections import Connection
from pymysql.constants.COMMAND import COM_QUERY
from pymysql.constants.CR import CR_SERVER_LOST
from pymysql.converters import encoders
from pymysql.err import MySQLError, OperationalError, raise_mysql_exception

from hyper_proxy.common.errors import BackendError
from hyper_proxy.conn_pool.sql_answer import Answer, packets
from hyper_proxy.conn_pool.sql_error import (
    DEADLOCK,
    DUPLICATE,
    KINDS,
    LOCK_WAIT,
    STATEMENT_TIMES,
    UNKNOWN,
    SqlError,
    describe,
)
from hyper_proxy.conn_pool.sql_line import Line
from hyper_proxy.conn_pool.sql_wire import Wire
from hyper_proxy.stats.classes import ADMIN, WRITE

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.sql_node import SqlNode

Row = tuple[bytes | None, ...]


class Default:
    """As a parameter: what the column has by default."""


Parameter = bytes | str | int | float | Default | None

DEFAULT = Default()

SQL_MODE = "STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION"  # what does not fit is an error; a backslash escapes
SERVER_SHARE = 0.8  # of read_ms after which a MariaDB gives a statement up itself, so that the connection stays good
LOCK_SHARE = 0.4  # of read_ms that a lock is waited for, in whole seconds: twice, before the time is over
WRONG_VALUE = frozenset(code for code, kind in KINDS.items() if kind == "value")
ORDERLY = frozenset({DEADLOCK, DUPLICATE, LOCK_WAIT, *STATEMENT_TIMES, *WRONG_VALUE})
"""Errors that are an answer like others: after a ROLLBACK the connection is as it was before."""
NONSENSE = (struct.error, ValueError, LookupError, AssertionError, TypeError, AttributeError, RuntimeError)
"""What the driver raises when a server sends what is no answer."""
LOST = (2003, 2006, 2013)  # the driver's own numbers; it has closed the connection
OK_BYTES = 64  # a statement's header and a little more; beside max_allowed_packet


class SqlConnection:
    """Logged in and ready. `memo` keeps what was found out over this connection; it ends with it."""

    def __init__(self, node: SqlNode, wire: Wire) -> None:
        """Log in over a fresh connection, all of it within read_ms. Raises SqlError."""
        self.node = node
        self.wire = wire
        self.memo: dict[Hashable, Any] = {}
        self.idle_since = 0.0
        self.max_bytes = 0
        self.subject = ""  # what the statements are about, for errors: "table profile: "
        self._definitions: list[bytes] = []  # of the last statement's columns
        self._asking = False  # between a statement and its whole answer
        self._broken = False
        self._open = False  # a transaction is
        # No decoders: every field stays what was sent.
        conv: Any = {**encoders, Default: lambda value, mapping: "DEFAULT"}
        self._driver: Any = Connection(
            user=node.username,
            password=node.password,
            database=node.database or None,
            charset="utf8mb4",
            use_unicode=False,
            conv=conv,
            autocommit=None,
            ssl_disabled=True,
            defer_connect=True,
        )
        self.line: Any = None  # a Line, when it is logged in
        self._login()
        self.line = Line(wire.sock)

    def _login(self) -> None:
        node = self.node
        wire = self.wire
        wire.deadline = monotonic() + node.read_s
        try:
            self._driver.connect(wire)
            is_mariadb = "mariadb" in str(self._driver.server_version).lower()
            longest = f", max_statement_time = {node.read_s * SERVER_SHARE:.3f}" if is_mariadb else ""
            wait_s = max(1, int(node.read_s * LOCK_SHARE))
            cursor = self._driver.cursor()
            cursor.execute(
                f"SET SESSION sql_mode = '{SQL_MODE}', autocommit = 1, innodb_lock_wait_timeout = {wait_s}{longest}"
            )
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            cursor.execute("SELECT @@max_allowed_packet")
            self.max_bytes = int(cursor.fetchall()[0][0]) - OK_BYTES
            if not wire.is_drained():
                raise ValueError("it answers more than it was asked")
        except MySQLError as error:
            raise self._translated(error) from error
        except RuntimeError as error:  # a way of logging in that needs another package
            raise self._say("login", str(error)) from error
        except NONSENSE as error:
            raise self._say("protocol", f"it does not speak MySQL's protocol ({error})") from error

    # ---- statements

    def execute(self, sql: str, parameters: Sequence[Parameter] = (), klass: int = WRITE) -> list[Row]:
        """The rows of a statement, %s for each parameter. Raises SqlError; `affected` then means nothing.

        klass: of hyper_proxy.stats.classes, under which it is counted.
        """
        escape = self._driver.escape  # as the driver's cursor does it, without one
        text = (sql % tuple([escape(parameter) for parameter in parameters])).encode()
        if len(text) > self.max_bytes:
            size, most = len(text), self.max_bytes
            raise self.error("size", f"the statement has {size} bytes, the server takes {most} (max_allowed_packet)")
        began = monotonic()
        self._asking = True
        self.node.pool.sent += 1
        self.node.pool.by_class[klass] += 1
        try:
            answer = self._ask(text, began + self.node.read_s)
        except MySQLError as error:
            failure = self._translated(error)
            self.node.errors[failure.kind] += 1
            raise failure from error
        except NONSENSE as error:
            raise self.error("protocol", f"its answer makes no sense ({error})") from error
        self._asking = False
        self.node.latency.add(int((monotonic() - began) * 1_000_000))
        self.affected = answer.affected
        self._definitions = answer.definitions
        rows: list[Row] = answer.rows
        return rows

    def _ask(self, text: bytes, deadline: float) -> Answer:
        """The whole answer to a statement. Raises MySQLError, and NONSENSE."""
        try:
            answer: Answer = self.line.ask(packets(COM_QUERY, text), deadline)
        except OSError as error:
            raise OperationalError(CR_SERVER_LOST, error.strerror or str(error)) from error
        if answer.failure:
            raise_mysql_exception(answer.failure)
        return answer

    def named(self, sql: str) -> list[dict[str, bytes | None]]:
        """The rows of a statement about the server itself, by the names of their columns. Raises SqlError."""
        rows = self.execute(sql, (), ADMIN)
        names = [_column_name(definition) for definition in self._definitions]
        return [dict(zip(names, row, strict=True)) for row in rows]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is executed inside, or nothing. Raises SqlError.

        When it does so without a code at the end, nobody knows whether it was committed.
        """
        self._open = True
        try:
            self.execute("START TRANSACTION")
            yield
        except BaseException:
            self._roll_back()
            raise
        self.execute("COMMIT")
        self._open = False

    def _roll_back(self) -> None:
        """If that is not possible, the connection ends unclean, and the server does it."""
        if not self._asking and not self._broken:
            with suppress(SqlError):
                self.execute("ROLLBACK")
                self._open = False

    @property
    def is_clean(self) -> bool:
        """May another request use it?"""
        return not (self._asking or self._broken or self._open)

    def close(self) -> None:
        """End it, without a word: the server notices."""
        self.line.close()
        self.wire.close()

    def cut(self) -> None:
        """End it under whoever uses it."""
        self.wire.cut()

    @property
    def bytes_in(self) -> int:
        return self.wire.bytes_in + self.line.bytes_in

    @property
    def bytes_out(self) -> int:
        return self.wire.bytes_out + self.line.bytes_out

    # ---- errors

    def error(self, kind: str, detail: str) -> SqlError:
        """Count a failure and say it."""
        self.node.errors[kind] += 1
        return self._say(kind, detail)

    def _say(self, kind: str, detail: str, code: int = 0) -> SqlError:
        return SqlError(self.node.instance, self.node.where, kind, detail, code)

    def _translated(self, error: MySQLError) -> SqlError:
        read_ms = round(self.node.read_s * 1000)
        if self.wire.is_late or (self.line is not None and self.line.is_late):
            return self._say("timeout", f"no answer within {read_ms} ms")
        code, message = _code_and_message(error)
        if not code or code in LOST:
            return self._say("reset", f"the connection was lost ({message})")
        if code in ORDERLY:
            self._asking = False
        else:
            self._broken = True
        return self._say(KINDS.get(code, UNKNOWN), self.subject + describe(code, message), code)


def _column_name(definition: bytes) -> str:
    """The fifth of the texts that a definition begins with; all of them are short."""
    at = 0
    for _ in range(4):
        at += 1 + definition[at]
    return definition[at + 1 : at + 1 + definition[at]].decode()


def _code_and_message(error: MySQLError) -> tuple[int, str]:
    words = [*error.args, "", ""]
    code = words[0] if isinstance(words[0], int) else 0
    message = words[1] if code else words[0]
    return code, message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def is_lost(error: BackendError) -> bool:
    """Is the connection gone, so that the server has undone what was not committed?"""
    return isinstance(error, SqlError) and error.kind == "reset"
