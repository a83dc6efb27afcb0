"""What all workers of a machine must agree on, word by word, in memory that they share or in a file that outlives them.

A board has places of eight native words, each found by its name. A word is stored by one aligned copy, so a reader sees
either the old or the new value. Who changes several words that belong together holds the lock of their place: a lock of
the system on one byte, which ends with its process. (fcntl(2), record locks: closing any descriptor of the file, that
of its mapping included, gives back all of them, so it is opened once and stays open.)
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EBUSY, ENOSPC
from hashlib import blake2b
from secrets import randbits

PLACES = 4096
WORDS = 8
_WORD_BYTES = 8
_FLEET, _CLAIM = 2 * PLACES + 1, 2 * PLACES + 2  # held by all workers of one fleet; by who is just looking whose it is
_ROW_LOCKS = 3 * PLACES
_BYTES = PLACES * WORDS * _WORD_BYTES  # pages, all of them
ROWS = 128  # of counters, one for a process that counts what it has under way
CELLS = 4096  # in a row
_ROW_BYTES = CELLS * 2
SWEEP_S = 0.1
_NOTHING = memoryview(bytes(2 * CELLS)).cast("H")
NAME = 0  # the word that says whose place it is


class Place:
    """`words` are those of one name; the first is taken."""

    def __init__(self, board: Board, index: int) -> None:
        self.board = board
        self.index = index
        self.words = board.words[index * WORDS : (index + 1) * WORDS]
        self.bytes = self.words.cast("B")
        self.held = False

    @contextmanager
    def change(self) -> Iterator[bool]:
        """Has this process the place for itself? False: another one is just changing it; try again in a moment."""
        with self.board.lock(self.index) as mine:
            yield mine

    def is_same(self, other: Place) -> bool:
        """Is it another view of the same place?"""
        return self.board is other.board and self.index == other.index

    def hold(self) -> bool:
        """Be the one that has work to do here which takes time, in all processes; until `let_go`, or the end of this
        one. Another Place of the same name is another one, too."""
        if not self.held and self.index not in self.board.holding and self.board.take(PLACES + self.index):
            self.held = True
            self.board.holding.add(self.index)
        return self.held

    def let_go(self) -> None:
        """Let another process do it."""
        if self.held:
            self.held = False
            self.board.holding.discard(self.index)
            self.board.give_back(PLACES + self.index)


class Board:
    """fd: of the file; the board has it for itself. users: who has asked for it and has not left."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.users = 0
        self.holding: set[int] = set()  # places that are held in this process: to itself a lock is none
        if os.fstat(fd).st_size < _BYTES:
            os.ftruncate(fd, _BYTES)
        self.words = memoryview(mmap.mmap(fd, _BYTES)).cast("Q")

    def place(self, name: str) -> Place:
        """The place of this name, all zero when nobody has asked for it before. Raises OSError: none is left."""
        digest = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big") | 1
        with self.lock(2 * PLACES, wait=True):
            for step in range(PLACES):
                index = (digest + step) % PLACES
                found = self.words[index * WORDS + NAME]
                if found in (0, digest):
                    self.words[index * WORDS + NAME] = digest
                    return Place(self, index)
        raise OSError(ENOSPC, "no place is left on the board")

    @contextmanager
    def lock(self, byte: int, wait: bool = False) -> Iterator[bool]:
        """The lock of this byte, if it can be had, while the block runs, which must not yield to other greenlets."""
        mine = self.take(byte, wait)
        try:
            yield mine
        finally:
            if mine:
                self.give_back(byte)

    def to_disk(self) -> None:
        """What stands here now outlives the machine, if the board is in a file."""
        os.fdatasync(self.fd)

    def take(self, byte: int, wait: bool = False) -> bool:
        """Get the lock of this byte, at once or not at all."""
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, byte)
        except (BlockingIOError, PermissionError):  # fcntl(2): EAGAIN or EACCES, as the system likes
            return False
        return True

    def share(self, byte: int) -> None:
        """Hold this lock together with others; where this process had it alone, it goes over without a gap."""
        fcntl.lockf(self.fd, fcntl.LOCK_SH, 1, byte)

    def give_back(self, byte: int) -> None:
        """The lock of this byte."""
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, byte)


class Rows:
    """Rows of cells in shared memory, of which each process that asks has one of each kind and alone writes there.

    counts  what a process has under way, by cell; begun: how much it has begun so far; flags: what it holds
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._last = board.place("rows").words  # word 1: how many were ever taken
        self._counts, self._begun, self._flags = (_rows(board.fd, kind) for kind in range(3))
        self._sweep_at = 0.0
        self.mine = -1

    def take(self) -> bool:
        """Have a row, all zero at first, until this process ends; False when there is none left."""
        if self.mine < 0:
            self.mine = next((row for row in range(ROWS) if self._board.take(_ROW_LOCKS + row)), -1)
            if self.mine < 0:
                return False
            for cell in range(CELLS):
                self._counts[self.mine][cell] = self._flags[self.mine][cell] = 0
            self._last[1] = max(self._last[1], self.mine + 1)
        return True

    def sweep(self, at: float) -> None:
        """Forget what processes had under way and held that have ended, however that was; at most every SWEEP_S."""
        if at < self._sweep_at:
            return
        self._sweep_at = at + SWEEP_S
        for row in range(self._last[1]):
            if row != self.mine and self._board.take(_ROW_LOCKS + row):
                self._counts[row][:] = self._flags[row][:] = _NOTHING
                self._board.give_back(_ROW_LOCKS + row)

    def own(self) -> tuple[memoryview, memoryview, memoryview]:
        """This process' counts, begun and flags."""
        return self._counts[self.mine], self._begun[self.mine], self._flags[self.mine]

    def of_others(self) -> Iterator[tuple[memoryview, memoryview]]:
        """Counts and begun of the other processes that have a row, or had."""
        for row in range(self._last[1]):
            if row != self.mine:
                yield self._counts[row], self._begun[row]

    def flags(self) -> list[memoryview]:
        """Those of all processes."""
        return self._flags[: self._last[1]]


def _rows(fd: int, kind: int) -> list[memoryview]:
    """Behind the places in the file; what nobody has had costs nothing."""
    begin = _BYTES + kind * ROWS * _ROW_BYTES
    end = begin + ROWS * _ROW_BYTES
    if os.fstat(fd).st_size < end:
        os.ftruncate(fd, end)
    memory = memoryview(mmap.mmap(fd, end - begin, offset=begin)).cast("H")
    return [memory[row * CELLS : (row + 1) * CELLS] for row in range(ROWS)]


class Boards:
    """Those of this process: one in memory for all that need not outlive the fleet, and one for each folder, whatever
    it is called. None is ever closed."""

    def __init__(self) -> None:
        self._shared: Board | None = None
        self._in_folders: dict[tuple[int, int], Board] = {}  # by the device and the number of the file
        self._rows: Rows | None = None

    def share(self, fd: int = -1) -> None:
        """What is in memory is from now on that of all processes that will be forked from this one, and of those that
        have this file already: a master hands it on to the one that takes its place.

        Sharing again changes nothing.
        """
        if self._shared is None:
            fd = fd if fd >= 0 else os.memfd_create("board")
            os.set_inheritable(fd, False)
            self._shared = Board(fd)
            self._rows = Rows(self._shared)

    @property
    def fd(self) -> int:
        """The file in memory."""
        self.share()
        assert self._shared is not None
        return self._shared.fd

    @property
    def rows(self) -> Rows:
        """Those in memory."""
        self.share()
        assert self._rows is not None
        return self._rows

    def of(self, folder: str) -> Board:
        """The board in this folder, which is made when it is not there, unless that which it is in is missing as well;
        "" is the one in memory. Raises OSError, also when another fleet uses it. Who has asked says `leave` at last."""
        if not folder:
            self.share()
            assert self._shared is not None
            return self._shared
        board = self._opened(folder)
        if board.users == 0:
            self._claim(board)
        board.users += 1
        return board

    def leave(self, board: Board) -> None:
        """One of those who have asked for it needs it no more; when all do, in all workers, another fleet may have the
        folder."""
        if board is not self._shared:
            board.users -= 1
            if board.users == 0:
                board.give_back(_FLEET)

    def _opened(self, folder: str) -> Board:
        """Two boards of one file would not see each other's locks."""
        path = os.path.join(folder, "board")
        with suppress(FileExistsError):
            os.mkdir(folder, mode=0o750)
        with suppress(FileNotFoundError):
            known = self._in_folders.get(_identity(os.stat(path)))
            if known is not None:
                return known
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            os.posix_fallocate(fd, 0, _BYTES)  # a page that finds no room on the disk later ends its process
            board = Board(fd)
        except OSError:
            os.close(fd)
            raise
        self._in_folders[_identity(os.fstat(fd))] = board
        return board

    def _claim(self, board: Board) -> None:
        """A folder is for one fleet: another one would copy a key while a write of it is under way here, and take that
        back. The lock ends with the last worker. Raises OSError."""
        owner = board.place("fleet").words
        with board.lock(_CLAIM, wait=True):
            if not board.take(_FLEET) and owner[1] != self._fleet:
                text = "give each fleet a folder of its own, or wait until that one has left this one and what it does"
                raise OSError(EBUSY, f"another fleet uses it (master {owner[2]}): {text} there is done")
            owner[1], owner[2] = self._fleet, os.getppid()
            board.share(_FLEET)

    @property
    def _fleet(self) -> int:
        """What tells this fleet from any other; who takes its place has the same, since it has the board in memory."""
        board = self.of("")
        words = board.place("fleet").words
        with board.lock(_CLAIM, wait=True):
            words[1] = words[1] or randbits(63) | 1
        return int(words[1])


def _identity(found: os.stat_result) -> tuple[int, int]:
    """What tells a file from any other, as long as somebody has it open."""
    return found.st_dev, found.st_ino


BOARDS = Boards()
