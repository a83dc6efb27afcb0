# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Finished lines of the log that wait for the disk, one behind the other in blocks of memory that are used again.

Who makes many lines writes them into the block itself, without a Python object for any of them:

    at = lines.reserve(most)        # -1: nothing more may wait, it is lost and counted
    ... lines.block[at] ...
    lines.commit(size)

He may as well only promise them, and write when he is asked to finish: before any other line, and before lines leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import cython

if TYPE_CHECKING:
    from hyper_proxy.common.log_lines import Form

BLOCK: cython.Py_ssize_t = 65536
SPARE = 16  # blocks that are kept when there is little to write: some times what the log takes at once
NEVER = 1 << 62


@cython.cclass
class Author:
    """Base of who promises lines."""

    @cython.cfunc
    def finish(self) -> None:
        """Write what was promised."""
        raise NotImplementedError


@cython.final
@cython.cclass
class Lines:
    """At most `limit` bytes wait or are just being written. When `alarm_at` bytes wait, `alarm` is called, once.

    waiting  bytes that nobody has taken yet; lines that one author has promised count as one
    lost     lines that did not fit, or that the disk refused
    """

    def __init__(self, limit: int, alarm: Callable[[], None]) -> None:
        self.limit = limit
        self.alarm = alarm
        self.alarm_at = NEVER
        self.waiting = 0
        self.leaving = 0
        self.lost = 0
        self.untold = 0
        self.authors: list = []  # those who have promised lines
        self.full: list = []  # (block, bytes in it)
        self.spare: list = []
        self.block = _block(BLOCK)
        self.used = 0

    @cython.ccall
    def put(self, line: bytes) -> None:
        """One line that ends with a newline; lost when there is no room."""
        self.finish()
        size: cython.Py_ssize_t = len(line)
        at: cython.Py_ssize_t = self.reserve(size)
        if at < 0:
            return
        if cython.compiled:
            source: cython.p_uchar = line
            to: cython.p_uchar = self.block
            memcpy(to + at, source, size)  # type: ignore[name-defined]  # noqa: F821
        else:
            self.block[at : at + size] = line
        self.commit(size)

    @cython.ccall
    @cython.exceptval(-2, check=False)
    def reserve(self, size: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where in `block` a line of so many bytes may be written; -1 when it is lost."""
        if self.waiting + self.leaving + size > self.limit:
            self.lose(1)
            return -1
        if self.used + size > BLOCK:
            self.end_block()
            if size > BLOCK:
                self.block = _block(size)  # for this line, and used once
        return self.used

    @cython.ccall
    def commit(self, size: cython.Py_ssize_t) -> None:
        """A line of so many bytes was written where `reserve` said."""
        self.used += size
        self.wait_for_more(size)

    @cython.cfunc
    def promise(self, author: Author) -> None:
        """He has lines to write, and does it when he is asked to."""
        self.authors.append(author)
        self.wait_for_more(1)

    @cython.ccall
    def finish(self) -> None:
        """What is promised is written."""
        author: Author
        while self.authors:
            author = self.authors.pop()
            self.waiting -= 1
            author.finish()

    @cython.cfunc
    @cython.inline
    def wait_for_more(self, size: cython.Py_ssize_t) -> None:
        self.waiting += size
        if self.waiting >= self.alarm_at:
            self.alarm_at = NEVER
            self.alarm()

    def lose(self, lines: int) -> None:
        """So many lines are lost."""
        self.lost += lines
        self.untold += lines

    def tell(self) -> int:
        """How many were lost since this was last asked."""
        untold, self.untold = self.untold, 0
        return untold

    @cython.cfunc
    def end_block(self) -> None:
        if self.used:
            self.full.append((self.block, self.used))
            self.block = self.spare.pop() if self.spare else _block(BLOCK)
            self.used = 0

    def take(self) -> list[memoryview]:
        """All that waits, in its order; to be given back when it is written, and before anything else is taken."""
        self.finish()
        self.end_block()
        self.leaving, self.waiting = self.waiting, 0
        taken, self.full = self.full, []
        return [memoryview(block)[:used] for block, used in taken]

    def give_back(self, taken: Sequence[memoryview]) -> None:
        """It is written, or lost."""
        self.leaving = 0
        blocks = [part.obj for part in taken if isinstance(part.obj, bytearray) and len(part.obj) == BLOCK]
        self.spare += blocks[: max(0, SPARE - len(self.spare))]


@cython.cclass
class Outlet:
    """Where the lines of a process go, and how they look, for who makes them on his own.

    epoch: changes with everything else. lines: None when they must go through the log. mute: nobody wants those of
    the level "info". common: the fields at the end of each line.
    """

    def __init__(self, form: Form) -> None:
        self.epoch = 0
        self.lines: Lines | None = None
        self.mute = False
        self.form = form
        self.common: dict = {}


@cython.cfunc
@cython.inline
def _block(size: cython.Py_ssize_t) -> bytearray:
    """Compiled without the zeros, so that the memory is used when it is written to."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)  # type: ignore[name-defined]  # noqa: F821
    else:
        return bytearray(size)
