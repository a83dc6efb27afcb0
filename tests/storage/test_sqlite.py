"""The embedded storage: atomic across processes, blocking nobody else, clear when its file is no good."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import gevent
import psutil
import pytest

from hyper_proxy.common.errors import BackendError, ClientError, HyperProxyError
from hyper_proxy.config.model import Level, Server, Timeout
from hyper_proxy.storage.keyvalue import EXPIRED, REMOVE, Item, Outcome, Put
from hyper_proxy.storage.sqlite import SWEEP_EVERY, SWEEP_ROWS, SqliteStorage
from tests.kit.fleet import ROOT
from tests.kit.wait import wait_for

NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "deep" / "folder" / "kv.db")


@pytest.fixture
def kv(path: str) -> Iterator[SqliteStorage]:
    storage = SqliteStorage("user", path, lock_s=0.2, turn_s=0.2)
    storage.open()
    yield storage
    storage.close()


def limit_pages(kv: SqliteStorage, pages: int) -> None:
    """What a full disk does: SQLite refuses to grow the file."""
    kv._run(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone(), writes=False)


def outcome(ask: Callable[..., object], *arguments: object) -> object:
    """What it returns, or the error of this project that it raises."""
    try:
        return ask(*arguments)
    except HyperProxyError as error:
        return error


def threads() -> int:
    """Native threads of this process, also those that Python did not start."""
    return psutil.Process().num_threads()


def rows(path: str) -> int:
    """All rows of the file, expired ones too."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM item").fetchone()[0])


# ---- values


def test_an_item_comes_back_with_value_flags_expiry_and_version(kv: SqliteStorage) -> None:
    expires_at = time.time() + 100
    kv.store(b"a", b"\x00\xff", 4294967295, expires_at)
    assert kv.get_many([b"x", b"a", b"a"]) == [None, Item(b"\x00\xff", 4294967295, expires_at, 1),
                                               Item(b"\x00\xff", 4294967295, expires_at, 1)]


def test_values_survive_closing_and_opening(kv: SqliteStorage, path: str) -> None:
    kv.store(b"a", b"1")
    kv.close()
    kv.open()
    assert kv.get_many([b"a"])[0] == Item(b"1", 0, None, 1)


def test_every_put_gets_a_higher_version_even_after_a_delete(kv: SqliteStorage) -> None:
    versions = []
    for _ in range(3):
        _, (version,) = kv.update([b"a"], lambda items: ([Put(b"1")], None))
        versions.append(version)
        kv.delete_many([b"a"])
    kv.clear()
    kv.close()
    kv.open()
    versions += kv.update([b"a", b"b"], lambda items: ([Put(b"1"), None], None))[1]
    assert versions == [1, 2, 3, 4, 0]


def test_a_new_time_of_expiry_leaves_the_version(kv: SqliteStorage) -> None:
    kv.store(b"a", b"1", 7)
    later = time.time() + 50
    assert kv.expire_many([b"a", b"b"], later) == [Item(b"1", 7, None, 1), None]
    assert kv.get_many([b"a"]) == [Item(b"1", 7, later, 1)]
    assert (kv.persist(b"a"), kv.persist(b"a"), kv.persist(b"b")) == (True, False, False)


# ---- expiry


def test_expired_rows_go_in_bounded_batches_as_writes_come(kv: SqliteStorage, path: str) -> None:
    dead = 3 * SWEEP_ROWS
    kv.put_many([(b"%d" % number, Put(b"x", 0, EXPIRED)) for number in range(dead)])
    counts = []
    for _ in range(3 * SWEEP_EVERY):
        kv.store(b"live", b"1")
        counts.append(rows(path) - 1)
    assert {before - after for before, after in pairwise(counts)} == {0, SWEEP_ROWS}
    assert counts[-1] == 0


# ---- all or nothing


def test_a_failing_write_leaves_nothing_of_a_multi_key_put(kv: SqliteStorage) -> None:
    kv.store(b"a", b"old")
    with pytest.raises(BackendError) as caught:
        kv.put_many([(b"a", Put(b"new")), (b"b", Put(bytes(1_000_000_001)))])
    assert caught.value.kind == "size"
    assert [item and item.value for item in kv.get_many([b"a", b"b"])] == [b"old", None]


def test_several_edits_apply_in_order(kv: SqliteStorage) -> None:
    kv.update([b"a", b"a", b"b"], lambda items: ([Put(b"1"), Put(b"2"), REMOVE], None))
    assert kv.get_many([b"a"])[0] == Item(b"2", 0, None, 2)


def test_a_batch_of_concurrent_writes_keeps_what_succeeds_and_undoes_what_fails(kv: SqliteStorage) -> None:
    def half(items: list[Item | None]) -> tuple[list[Put], None]:
        raise ClientError("no")

    huge = bytes(1_000_000_001)
    asked: list[tuple[Any, ...]] = [(kv.incr_signed, b"n", 1)] * 200
    asked.insert(50, (kv.put_many, [(b"n", Put(b"100000")), (b"a", Put(huge))]))
    asked.insert(90, (kv.update, [b"n"], half))
    jobs = [gevent.spawn(outcome, *words) for words in asked]
    gevent.joinall(jobs)
    assert [type(job.value) for job in jobs if not isinstance(job.value, int)] == [BackendError, ClientError]
    assert [job.value for job in jobs if isinstance(job.value, int)] == list(range(1, 201))
    assert [item and item.value for item in kv.get_many([b"n", b"a"])] == [b"200", None]


def test_who_shares_a_batch_with_a_write_that_finds_the_disk_full_is_told_the_truth(kv: SqliteStorage) -> None:
    limit_pages(kv, 12)
    jobs = [gevent.spawn(outcome, kv.store, b"%d" % size, b"x" * 3000 * (size % 3 + 1)) for size in range(60)]
    gevent.joinall(jobs)
    stored = {size for size, job in enumerate(jobs) if job.value is Outcome.STORED}
    assert {job.value.kind for job in jobs if job.value is not Outcome.STORED} == {"full"}
    assert {size for size in range(60) if kv.get_many([b"%d" % size])[0]} == stored


# ---- several processes, several greenlets


def test_processes_that_share_a_file_lose_no_update_and_share_no_version(path: str) -> None:
    command = [sys.executable, "-m", "tests.storage.share", path, "150"]
    workers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = [[int(line) for line in worker.communicate(timeout=60)[0].split()] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    assert all(versions == sorted(versions) for versions in outputs)
    assert sorted(version for versions in outputs for version in versions) == list(range(1, 601))
    storage = SqliteStorage("user", path)
    storage.open()
    item = storage.get_many([b"shared"])[0]
    storage.close()
    assert item is not None and item.value == b"600"


def test_greenlets_go_on_while_a_write_waits_for_another_process(kv: SqliteStorage, path: str) -> None:
    kv.store(b"a", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write = gevent.spawn(outcome, kv.store, b"a", b"2")
        turns = 0
        while not write.ready():
            gevent.idle()
            turns += 1
        assert turns > 10
        assert isinstance(write.value, BackendError)
        assert write.value.kind == "locked"
        assert kv.get_many([b"a"])[0] == Item(b"1", 0, None, 1), "reading needs no lock"
    assert kv.store(b"a", b"3") is Outcome.STORED


def test_who_gets_no_turn_in_time_is_told_so(tmp_path: Path) -> None:
    path = str(tmp_path / "kv.db")
    kv = SqliteStorage("user", path, lock_s=0.3, turn_s=0.1)
    kv.open()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        first = gevent.spawn(outcome, kv.store, b"a", b"1")
        for _ in range(10):
            gevent.idle()
        others = [gevent.spawn(outcome, kv.store, b"a", b"2") for _ in range(200)]
        gevent.joinall([first, *others])
        assert time.monotonic() - started < 10, "the waits do not add up"
    kv.close()
    assert isinstance(first.value, BackendError)
    assert first.value.kind == "locked"
    assert {write.value.kind for write in others} == {"queue"}


# ---- files that are no good


def opening(path: Path) -> BackendError:
    storage = SqliteStorage("user", str(path), lock_s=0.2, turn_s=0.2)
    with pytest.raises(BackendError) as caught:
        storage.open()
    error = caught.value
    assert (error.instance, error.node) == ("user", str(path))
    assert str(path) in str(error) and "user" in str(error)
    with pytest.raises(BackendError, match="closed"):
        storage.get_many([b"a"])
    return error


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    file = tmp_path / "kv.db"
    file.write_bytes(b"something else entirely\n" * 100)
    assert opening(file).kind == "broken"
    assert file.read_bytes().startswith(b"something else"), "it is left as it was"


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "kv.db")) as other:
        other.execute("CREATE TABLE item (x)")
    error = opening(tmp_path / "kv.db")
    assert error.kind == "broken" and "another program" in str(error)


def test_a_newer_schema_is_refused(kv: SqliteStorage, path: str) -> None:
    kv.close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 2")
    assert "schema 2" in str(opening(Path(path)))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = opening(tmp_path / "file" / "kv.db")
    assert error.kind == "unwritable" and f"{tmp_path / 'file'} cannot be made or opened: " in str(error)


def test_a_folder_in_the_files_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "kv.db").mkdir()
    error = opening(tmp_path / "kv.db")
    assert error.kind == "unwritable" and str(error).endswith("the file cannot be opened (it is a folder)")


@pytest.fixture
def powerless() -> Iterator[None]:
    """Root becomes somebody who may do no more than others, until the test's end."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    yield
    if is_root:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, and nobody write into."""
    with tempfile.TemporaryDirectory(prefix="hyper_proxy-") as folder:
        (Path(folder) / "secret.db").touch(0)
        Path(folder).chmod(0o555)
        yield Path(folder)
        Path(folder).chmod(0o755)


def test_what_the_user_may_not_do_is_said(open_folder: Path, powerless: None) -> None:
    new, secret = open_folder / "kv.db", open_folder / "secret.db"
    assert f"the file cannot be opened (this user may not write into {open_folder})" in str(opening(new))
    assert "the file cannot be opened (this user may not read and write it)" in str(opening(secret))


def test_a_file_damaged_under_our_hands_is_an_error_of_its_requests(kv: SqliteStorage, path: str) -> None:
    kv.put_many([(b"%d" % number, Put(b"x" * 500)) for number in range(500)])
    kv.close()
    with Path(path).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * 4096 * 30)
    kv.open()
    with pytest.raises(BackendError) as caught:
        kv.get_many([b"%d" % number for number in range(500)])
    assert caught.value.kind == "broken"


def test_a_full_file_refuses_writes_and_serves_reads(kv: SqliteStorage) -> None:
    kv.store(b"a", b"1")
    limit_pages(kv, 10)
    with pytest.raises(BackendError) as caught:
        kv.store(b"b", b"x" * 100_000)
    assert caught.value.kind == "full"
    assert kv.get_many([b"a", b"b"]) == [Item(b"1", 0, None, 1), None]


def test_closing_twice_is_harmless_and_ends_the_thread(kv: SqliteStorage) -> None:
    before = threads()
    kv.close()
    kv.close()
    wait_for(lambda: gevent.idle() or threads() == before - 1, "the thread ends")


# ---- as a level of a configuration


def level(path: Path, read_ms: int = 200) -> Level:
    return Level("sqlite", servers=(Server(file=str(path)),), timeout=Timeout(read_ms=read_ms))


def test_an_unchanged_level_keeps_its_storage_over_a_reload(tmp_path: Path) -> None:
    first = SqliteStorage.of_level("user", level(tmp_path / "a.db"), None)
    assert SqliteStorage.of_level("user", level(tmp_path / "a.db"), first) is first
    others = [SqliteStorage.of_level("user", level(tmp_path / "a.db", read_ms=300), first),
              SqliteStorage.of_level("user", level(tmp_path / "b.db"), first)]
    first.store(b"a", b"1")
    assert [storage.count() for storage in others] == [1, 0]
    assert (others[0].lock_s, others[0].turn_s) == (0.3, 0.2)
    for storage in [first, *others]:
        storage.close()


def test_a_released_storage_still_answers_what_has_begun(kv: SqliteStorage) -> None:
    kv.release(None)
    gevent.idle()
    assert kv.store(b"a", b"1") is Outcome.STORED
