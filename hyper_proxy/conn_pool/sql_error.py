"""What goes wrong at a SQL server: its error numbers, and which kind of BackendError each of them is.

Numbers: https://mariadb.com/kb/en/mariadb-error-codes/ (the same as MySQL's below 1900).
"""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError

DEADLOCK = 1213
DUPLICATE = 1062
LOCK_WAIT = 1205
SYNTAX = 1064
STATEMENT_TIMES = (1969, 3024)  # max_statement_time of MariaDB, max_execution_time of MySQL

MAX_DETAIL = 300  # characters of what a server says


class SqlError(BackendError):
    """A statement failed. `code` is the server's number, 0 when it said nothing: then nobody knows what it has done."""

    def __init__(self, instance: str, node: str, kind: str, detail: str, code: int = 0) -> None:
        super().__init__(instance, node, kind, detail)
        self.detail = detail
        self.code = code


KINDS: dict[int, str] = {
    **dict.fromkeys((1040, 1203, 1226, 1129), "busy"),  # too many connections: of all, of the user; the host is blocked
    **dict.fromkeys((1044, 1045, 1049, 1251, 1698, 1820, 1862), "login"),
    **dict.fromkeys((1046, 1054, SYNTAX, 1103, 1142, 1143, 1146, 1227, 1364, 1467), "schema"),
    # 1267, 1270, 1271: the same of two, three, and more operands; from 1977 on: of MariaDB, then of MySQL 8.
    **dict.fromkeys((1264, 1265, 1267, 1270, 1271, 1292, 1300, 1366, 1406, 1977, 3854, 3988), "value"),
    **dict.fromkeys((DEADLOCK, LOCK_WAIT, 1020), "locked"),
    **dict.fromkeys((1290, 1792, 1836), "unwritable"),  # read_only, a read-only transaction or database
    **dict.fromkeys((1021, 1114, 3), "full"),
    **dict.fromkeys((126, 127, 144, 145, 1034, 1194, 1195), "broken"),
    **dict.fromkeys((1053, 1080, 1317, 1927), "reset"),  # the server ends, or ends this connection
    **dict.fromkeys(STATEMENT_TIMES, "timeout"),
    1153: "size",
    DUPLICATE: "schema",
}
UNKNOWN = "io"  # the kind of all other numbers

TEXTS: dict[int, str] = {
    DUPLICATE: "another row is in the way: one that `where` leaves aside, or one of another unique index",
    DEADLOCK: "a deadlock with other transactions, again and again",
    LOCK_WAIT: "another transaction keeps the row locked",
    **dict.fromkeys(STATEMENT_TIMES, "the statement took too long (a lock, a missing index, or a busy server)"),
}


def describe(code: int, message: str) -> str:
    """What a server's error means, and its own words."""
    words = "".join(char if char.isprintable() else "?" for char in message)[:MAX_DETAIL]
    said = f"error {code}: {words}"
    return f"{TEXTS[code]} ({said})" if code in TEXTS else said
