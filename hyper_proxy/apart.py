"""Reads a configuration in a child process: whatever the code of a plug-in does there, and whatever it loads, who asks
goes on without it. The master must have neither, since what it has, all of its workers have.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from select import select

from hyper_proxy.common.errors import Finding
from hyper_proxy.config import ask
from hyper_proxy.config.codes import ERROR
from hyper_proxy.config.load import inspect
from hyper_proxy.config.model import Config

TIMEOUT_S = 30.0
"""Far more than any file needs: each of its plug-ins has a limit of its own."""
_READ_BYTES = 1 << 20
_NAME_BYTES = 256  # more than any name of a plug-in that people can read
_STDOUT, _STDERR = 1, 2

Inspection = tuple[Config | None, list[Finding]]


def inspect_apart(path: str, once: bool = False) -> Inspection:
    """All findings about a file, and the configuration if none of them is an error; a child that does not come back is
    a finding as well. once: a pipe will do. Both ends are this program, so that the form of the pickle between them is
    no interface."""
    sys.stdout.flush()
    sys.stderr.flush()
    theirs, ours = os.pipe()
    loading = mmap.mmap(-1, _NAME_BYTES)
    child = os.fork()
    if child == 0:
        os.close(theirs)
        ask.on_load = lambda name: _note(loading, name)
        _tell(path, once, ours)
    os.close(ours)
    try:
        data, late = _hear(theirs)
    finally:
        os.close(theirs)
        os.kill(child, signal.SIGKILL)  # it has said everything, or will never
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    name = loading[:].rstrip(b"\0").decode(errors="replace")
    where = f" while it loaded '{name}'" if name else ""
    if late:
        return None, [_finding(path, f"reading it, and loading its plug-ins, took more than {TIMEOUT_S:g} s{where}")]
    try:
        found: Inspection = pickle.loads(data)
    except (EOFError, pickle.UnpicklingError):
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return None, [_finding(path, f"the process that read it, and loaded its plug-ins, ended with {how}{where}")]
    return found


@contextmanager
def prints_aside() -> Iterator[None]:
    """Where code of plug-ins runs in this process: what it prints, and the programs that it starts, is no answer of
    ours, and goes to standard error."""
    sys.stdout.flush()
    ours = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(ours, _STDOUT)
        os.close(ours)


def _tell(path: str, once: bool, pipe: int) -> None:
    """The child's whole life. What plug-ins print is no finding: it goes to standard error."""
    code = os.EX_SOFTWARE
    try:
        os.dup2(_STDERR, _STDOUT)
        with open(pipe, "wb", closefd=False) as out:  # its end is that of the process: who hears it kills what is left
            pickle.dump(inspect(path, once), out)
        code = os.EX_OK
    except BaseException:  # noqa: BLE001  nothing of the parent's must run in this process
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _note(memory: mmap.mmap, name: str) -> None:
    """For the other process, whatever becomes of this one."""
    memory[:] = name.encode()[:_NAME_BYTES].ljust(_NAME_BYTES, b"\0")


def _hear(pipe: int) -> tuple[bytes, bool]:
    """All that the child says, and whether it is late."""
    data = bytearray()
    deadline = time.monotonic() + TIMEOUT_S
    while (left := deadline - time.monotonic()) > 0:
        if select([pipe], [], [], left)[0]:
            part = os.read(pipe, _READ_BYTES)
            if not part:
                return bytes(data), False
            data += part
    return bytes(data), True


def _finding(path: str, message: str) -> Finding:
    return Finding(path, 1, ERROR, "HP111", message)
