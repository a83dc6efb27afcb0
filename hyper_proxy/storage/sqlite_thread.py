"""One thread with one SQLite connection, which many greenlets use: what has come meanwhile is one transaction.

    greenlets:  run(work)  run(work)  run(work)            wait, each for its own outcome
                    |          |          |
                 pending [ job, job, job, ... ]            one list; while a batch is in the thread the next one grows
                               |
    thread:     reads in one snapshot, then writes in one IMMEDIATE transaction, a savepoint for each job

A write transaction holds the file's lock from its beginning, so a read-change-write is atomic across processes. One
commit and one way to the thread and back serve the whole batch. A job that fails undoes its own statements only; a
commit that fails is the failure of its whole batch, and nobody was told anything before.
"""

from __future__ import annotations

import fcntl
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import gevent
from gevent.event import AsyncResult
from gevent.monkey import get_original
from gevent.threadpool import ThreadPool

from hyper_proxy.common.errors import BackendError

_sleep = get_original("time", "sleep")  # of the thread; a patched one would make an event loop there

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

RETRY_S = 0.002  # the longest pause between two attempts; SQLite's own pauses of up to 100 ms would starve some
CLOSE_TURN_S = 0.5  # the longest wait for others who close a file of the same folder
LOOK_S = 0.05  # at least between two looks for those who have waited too long
MAX_BATCH = 64  # jobs of one transaction: bounds how long the others wait for the lock

# SQLite's primary result codes -> BackendError.kind and what to tell. https://www.sqlite.org/rescode.html
_FAILURES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: ("locked", "another process keeps it locked"),
    sqlite3.SQLITE_LOCKED: ("locked", "another process keeps it locked"),
    sqlite3.SQLITE_FULL: ("full", "the disk or the file is full"),
    sqlite3.SQLITE_CORRUPT: ("broken", "the file is damaged"),
    sqlite3.SQLITE_NOTADB: ("broken", "the file is not an SQLite database"),
    sqlite3.SQLITE_CANTOPEN: ("unwritable", "the file cannot be opened"),
    sqlite3.SQLITE_READONLY: ("unwritable", "the file may not be written"),
    sqlite3.SQLITE_PERM: ("unwritable", "the file may not be written"),
    sqlite3.SQLITE_TOOBIG: ("size", "the value is larger than SQLite allows"),
    sqlite3.SQLITE_IOERR: ("io", "reading or writing the file failed"),
}
_OTHER_FAILURE = ("io", "SQLite failed")


@dataclass(frozen=True, slots=True)
class Fault:
    """The outcome of a job that failed; its greenlet raises the error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Job:
    """Some work, until when it may wait for its turn, and where its outcome is awaited."""

    work: Work[Any]
    writes: bool
    deadline: float
    outcome: AsyncResult = field(default_factory=AsyncResult)


class SqliteThread:
    """The connection that `connect` makes, in a thread of its own, for the greenlets of the event loop that starts it.

    instance, file: named in errors. lock_s: the longest wait for the file's lock. turn_s: for a turn in the thread.
    """

    def __init__(self, instance: str, file: str, lock_s: float, turn_s: float) -> None:
        self.instance = instance
        self.file = file
        self.lock_s = lock_s
        self.turn_s = turn_s
        self._pool = ThreadPool(1)
        self._connection: sqlite3.Connection | None = None  # touched by the pool's one thread only
        self._pending: list[Job] = []
        self._pumping = False

    def start(self, connect: Callable[[], sqlite3.Connection], prepare: Callable[[sqlite3.Connection], None]) -> None:
        """Connect, and prepare the file once its lock can be had. Raises BackendError."""
        outcome = self._pool.spawn(self._start, connect, prepare).get()
        if isinstance(outcome, Fault):
            self.stop()
            raise outcome.error

    def stop(self) -> None:
        """Finish the batch that runs, close the connection, end the thread; what waits fails."""
        self._pool.spawn(self._disconnect).get()
        self._pool.kill()

    def run(self, work: Work[T], *, writes: bool) -> T:
        """The result of `work(connection)`, which runs inside a transaction in the thread; blocks this greenlet only.

        What `work` raises undoes it and is raised here; SQLite's errors come as BackendError.
        """
        job = Job(work, writes, time.monotonic() + self.turn_s)
        self._pending.append(job)
        if not self._pumping:
            self._pumping = True
            gevent.spawn(self._pump)
        outcome = job.outcome.get()
        if isinstance(outcome, Fault):
            raise outcome.error
        return cast(T, outcome)

    # ---- in the event loop

    def _pump(self) -> None:
        try:
            while self._pending:
                batch, self._pending = self._pending[:MAX_BATCH], self._pending[MAX_BATCH:]
                self._serve(batch)
        finally:
            self._pumping = False

    def _serve(self, batch: list[Job]) -> None:
        try:
            self._take_turns(batch)
        finally:
            for job in batch:
                if not job.outcome.ready():
                    job.outcome.set(Fault(self._error("io", "the thread failed")))

    def _take_turns(self, batch: list[Job]) -> None:
        now = time.monotonic()
        self._refuse(batch, now)
        # Reads first, for they need no lock; of concurrent requests any order is right.
        for writes in (False, True):
            jobs = [job for job in batch if job.writes is writes and job.deadline >= now]
            outcomes = self._wait(self._pool.spawn(self._execute, jobs, writes)) if jobs else []
            for job, outcome in zip(jobs, outcomes, strict=True):
                job.outcome.set(outcome)

    def _wait(self, batch: AsyncResult) -> list[Any]:
        """Its outcomes. A disk that hangs may take long, and whoever waits for a turn is told when his time is over."""
        while not batch.ready():
            batch.wait(max(self.turn_s, LOOK_S))
            now = time.monotonic()
            self._refuse(self._pending, now)
            self._pending = [job for job in self._pending if job.deadline >= now]
        return cast(list[Any], batch.get())

    def _refuse(self, jobs: Sequence[Job], now: float) -> None:
        for job in jobs:
            if job.deadline < now:
                job.outcome.set(Fault(self._error("queue", f"no turn within {self.turn_s:g} s")))

    # ---- in the thread

    def _start(self, connect: Callable[[], sqlite3.Connection], prepare: Callable[[sqlite3.Connection], None]) -> Any:
        try:
            self._connection = connect()
            self._insist(self._connection, prepare)
        except (sqlite3.Error, OSError, BackendError) as error:
            return Fault(self._translate(error))
        return None

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with _one_by_one(os.path.dirname(os.path.abspath(self.file))), closing(connection):
                pass

    def _execute(self, jobs: list[Job], writes: bool) -> list[Any]:
        """The outcomes of jobs that share a transaction."""
        connection = self._connection
        if connection is None:
            return [Fault(self._error("closed", "the storage is closed")) for _ in jobs]
        try:
            self._insist(connection, _begin_writing if writes else _begin_reading)
            outcomes = [self._step(connection, job.work) for job in jobs]
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            return [Fault(self._translate(error)) for _ in jobs]
        finally:
            _roll_back(connection)
        return outcomes

    def _step(self, connection: sqlite3.Connection, work: Work[Any]) -> Any:
        connection.execute("SAVEPOINT job")
        try:
            outcome = work(connection)
        except Exception as error:  # whatever it is, the greenlet that brought the work raises it
            if not connection.in_transaction:
                raise  # SQLite has undone the whole transaction
            connection.execute("ROLLBACK TO job")
            outcome = Fault(self._translate(error))
        connection.execute("RELEASE job")
        return outcome

    def _insist(self, connection: sqlite3.Connection, begin: Work[None]) -> None:
        """Do what needs a lock, again and again while another process has it."""
        deadline = time.monotonic() + self.lock_s
        while True:
            try:
                begin(connection)
                return
            except sqlite3.OperationalError as error:
                _roll_back(connection)
                if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
            _sleep(random.uniform(0, RETRY_S))

    def _translate(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.Error):
            kind, what = _FAILURES.get(_primary_code(error), _OTHER_FAILURE)
            why = _hindrance(self.file) if kind == "unwritable" else ""
            return self._error(kind, f"{what} ({why or error})")
        if isinstance(error, OSError):
            return self._error("unwritable", f"{error.filename} cannot be made or opened: {error.strerror}")
        return error

    def _error(self, kind: str, detail: str) -> BackendError:
        return BackendError(self.instance, self.file, kind, detail)


def _hindrance(file: str) -> str:
    """Why a file can't be opened or written, where the system tells; SQLite only says that."""
    folder = os.path.dirname(file)
    if os.path.isdir(file):
        return "it is a folder"
    if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK, effective_ids=True):
        return "this user may not read and write it"
    may_write = os.access(folder, os.W_OK | os.X_OK, effective_ids=True)
    return "" if may_write else f"this user may not write into {folder}"


@contextmanager
def _one_by_one(folder: str) -> Iterator[None]:
    """Of several processes one at a time is here; who has waited too long, or can't wait, goes on all the same.

    The last connection that is closed moves the -wal file into the database and removes it
    (https://www.sqlite.org/wal.html). Of two that are closed at the same moment neither is the last one. The lock is
    on the folder: to close any other descriptor of the database would give up SQLite's own locks on it.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # it may be written, but not listed, or is gone
        yield
        return
    try:
        deadline = time.monotonic() + CLOSE_TURN_S
        while not _locked(descriptor) and time.monotonic() < deadline:
            _sleep(random.uniform(0, RETRY_S))
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _begin_reading(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # only a read takes the snapshot


def _begin_writing(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _primary_code(error: sqlite3.Error) -> int:
    """The low byte of SQLite's extended result code; errors of the Python module itself have none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
