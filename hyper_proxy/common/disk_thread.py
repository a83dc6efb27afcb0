# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A thread that writes to files for one greenlet. Compiled, it never takes the interpreter.

A Python thread that has something to do beside a busy event loop is woken at each system call of the loop, and mostly
finds the interpreter taken again: a hundred changes of threads were counted for one write, as dear as a thousand lines
of a log.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from errno import EAGAIN

import cython
from gevent import get_hub

from hyper_proxy.common.log import MOST_PARTS


@cython.final
@cython.cclass
class DiskThread:
    """The thread begins with the first write, and ends with this object. Its descriptors are there before: a worker may
    have none left when it has something to write.
    """

    def __init__(self) -> None:
        if cython.compiled:
            self.prepare()

    def write_parts(self, fd: int, parts: Sequence[memoryview]) -> int:
        """Like os.writev, while other greenlets run; the bytes that were written. parts: at most MOST_PARTS, each the
        beginning of a bytearray. One at a time.

        Raises OSError as that does, and ValueError for more parts.
        """
        if not cython.compiled:
            outcome = get_hub().threadpool.apply(_writev, (fd, parts))
            if isinstance(outcome, OSError):
                raise outcome
            return outcome
        if len(parts) > MOST_PARTS:
            raise ValueError(f"{len(parts)} parts; {MOST_PARTS} are the most")
        if not self.job.begun:
            self.begin()
        job = cython.declare(cython.pointer(Job), self.job)  # type: ignore[name-defined]  # noqa: F821
        index: cython.int = 0
        for part in parts:
            block: bytearray = part.obj  # type: ignore[assignment]
            start: cython.p_char = block
            job.parts[index].iov_base = start
            job.parts[index].iov_len = len(part)
            index += 1
        job.fd = fd
        job.count = index
        os.eventfd_write(job.wake, 1)
        try:
            get_hub().wait(self.watcher)
        finally:
            os.eventfd_read(job.done)  # who is interrupted waits, too: the thread reads these blocks
        if job.written < 0:
            raise OSError(job.error, os.strerror(job.error))
        return job.written

    @cython.cfunc
    def prepare(self) -> None:
        wake = os.eventfd(0)
        done = os.eventfd(0)
        process: cython.int = _this_process()
        self.watcher = get_hub().loop.io(done, 1)
        self.job = cython.cast(cython.pointer(Job), calloc(1, cython.sizeof(Job)))  # type: ignore[name-defined]  # noqa: F821
        self.job.wake = wake
        self.job.done = done
        self.job.process = process

    @cython.cfunc
    def begin(self) -> None:
        """Start the thread. No signal is handled in it: one that comes must wake up the event loop."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        thread: cython.long = PyThread_start_new_thread(serve, self.job)  # type: ignore[name-defined]  # noqa: F821
        self.job.begun = thread != -1
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if not self.job.begun:
            raise OSError(EAGAIN, "the system starts no more threads")

    def __dealloc__(self) -> None:
        if self.job == cython.NULL:
            return
        if not self.job.begun:
            close_all(self.job)  # type: ignore[name-defined]  # noqa: F821
            free(self.job)  # type: ignore[name-defined]  # noqa: F821
            return
        ours = cython.declare(Job, self.job[0])  # type: ignore[name-defined]  # noqa: F821
        os.eventfd_write(ours.wake, 2)  # the thread frees the job
        if ours.apart:
            close_all(cython.address(ours))  # type: ignore[name-defined]  # noqa: F821


def _this_process() -> int:
    """A descriptor of it; -1 where a sandbox does not allow it."""
    try:
        return os.pidfd_open(os.getpid())
    except OSError:
        return -1


def _writev(fd: int, parts: Sequence[memoryview]) -> int | OSError:
    """In a thread of gevent, which would print what is raised."""
    try:
        return os.writev(fd, parts)
    except OSError as error:
        return error
