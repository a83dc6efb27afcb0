"""The thread that writes for a greenlet; compiled and plain."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType

import gevent
import psutil
import pytest

from hyper_proxy.build import compiled_modules
from hyper_proxy.common.disk_thread import DiskThread
from hyper_proxy.common.log import MOST_PARTS
from tests.kit.plain import both
from tests.kit.wait import wait_for

DISK_THREAD = "hyper_proxy.common.disk_thread"


def parts_of(*pieces: bytes) -> list[memoryview]:
    """Each in a block that is longer."""
    return [memoryview(bytearray(piece + b"not this"))[: len(piece)] for piece in pieces]


@both(DISK_THREAD)
def test_parts_are_written_in_their_order(module: ModuleType, tmp_path: Path) -> None:
    thread = module.DiskThread()
    pieces = [b"%d," % number * number for number in range(MOST_PARTS)]
    with (tmp_path / "a").open("wb", buffering=0) as file:
        for turn in range(3):
            assert thread.write_parts(file.fileno(), parts_of(*pieces)) == sum(map(len, pieces)), turn
    assert (tmp_path / "a").read_bytes() == b"".join(pieces) * 3


@both(DISK_THREAD)
def test_what_the_system_says_is_raised(module: ModuleType, tmp_path: Path) -> None:
    thread = module.DiskThread()
    with open("/dev/full", "wb", buffering=0) as full, pytest.raises(OSError, match="No space left on device"):
        thread.write_parts(full.fileno(), parts_of(b"x"))
    with (tmp_path / "a").open("wb", buffering=0) as file:
        assert thread.write_parts(file.fileno(), parts_of(b"goes on")) == 7


@both(DISK_THREAD)
def test_others_run_while_the_system_makes_it_wait(module: ModuleType) -> None:
    out, into = os.pipe()
    sent = os.urandom(1 << 20)
    writing = gevent.spawn(module.DiskThread().write_parts, into, parts_of(sent))
    gevent.idle()
    assert not writing.ready()  # a pipe takes 64 KB
    got = b""
    while len(got) < len(sent):
        got += os.read(out, 65536)
    assert writing.get(timeout=5) == len(sent)
    assert got == sent
    os.close(out)
    os.close(into)


def refuse(_: int) -> int:
    """os.pidfd_open, in a sandbox."""
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("lent", [True, False], ids=["lent", "common"])
def test_the_thread_ends_with_its_object(lent: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not lent:
        monkeypatch.setattr(os, "pidfd_open", refuse)
    process = psutil.Process()
    before = process.num_threads(), process.num_fds()
    thread = DiskThread()
    with (tmp_path / "a").open("wb", buffering=0) as file:
        assert thread.write_parts(file.fileno(), parts_of(b"written")) == 7
    assert (tmp_path / "a").read_bytes() == b"written"
    del thread
    if DISK_THREAD in compiled_modules():  # else it is one of gevent's, which are used again
        wait_for(lambda: (process.num_threads(), process.num_fds()) == before, "it has ended")


def test_the_thread_has_descriptors_of_its_own(tmp_path: Path) -> None:
    if DISK_THREAD not in compiled_modules():
        return
    before = {thread.id for thread in psutil.Process().threads()}
    thread = DiskThread()
    with (tmp_path / "a").open("wb", buffering=0) as file:
        for _ in range(3):
            thread.write_parts(file.fileno(), parts_of(b"x"))
    (born,) = {each.id for each in psutil.Process().threads()} - before
    assert len(os.listdir(f"/proc/self/task/{born}/fd")) == 3  # to be woken, to tell of it, to fetch what it writes to
    del thread
    wait_for(lambda: {each.id for each in psutil.Process().threads()} == before, "it has ended")
