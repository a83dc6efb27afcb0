"""What one side of a pair has missed: the names of keys, in files, until they have been copied.

A file has a generation in its name. Workers append to the one of the present generation, each record by one write; who
copies begins another generation first, and removes the files that it has copied. A writer that finds after its write
that the generation has changed writes once more: its record may have come too late for the file.

    record    crc32 of the rest (4 bytes), length of the payload (4), payload
    payload   database (2 bytes), key

What comes after a torn record was never said to be kept.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from zlib import crc32

from hyper_proxy.common.board import Place
from hyper_proxy.common.turn import let_others_run

HEAD = struct.Struct(">II")
TURN = 500  # records are read at once: a millisecond or two

Missed = tuple[int, bytes]  # database, key


class Full(Exception):
    """The journal may not grow any more, or can't be written."""


class Journal:
    """name: of the files, without their generation. word: where the generation is on the board."""

    def __init__(self, folder: str, name: str, place: Place, word: int, most_bytes: int, sync: bool) -> None:
        self.folder = Path(folder)
        self.name = name
        self.place = place
        self.word = word
        self.most_bytes = most_bytes
        self.sync = sync
        self.generation = -1
        self.fd = -1
        self.known: set[Missed] = set()

    def add(self, missed: Iterable[Missed]) -> None:
        """Keep them. Raises Full."""
        while True:
            self._follow()
            new = [one for one in missed if one not in self.known]
            if not new:
                return
            try:
                data = b"".join(map(_record, new))
                if os.fstat(self.fd).st_size + len(data) > self.most_bytes:
                    raise Full(f"it has {self.most_bytes} bytes")
                if os.write(self.fd, data) != len(data):
                    raise Full("the disk is full")
                if self.sync:
                    os.fdatasync(self.fd)
            except OSError as error:
                raise Full(str(error)) from error
            self.known.update(new)
            if self.generation == self.place.words[self.word]:
                return

    def _follow(self) -> None:
        generation = int(self.place.words[self.word])
        if generation == self.generation:
            return
        self.close()
        path = self.folder / f"{self.name}.{generation}.missed"
        try:
            self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            if self.sync:
                _name_to_disk(self.folder)
        except OSError as error:
            self.close()
            raise Full(str(error)) from error
        self.generation = generation
        self.known = set()

    # ---- for the one who copies

    def is_empty(self) -> bool:
        """Has it missed nothing?"""
        return not any(path.stat().st_size for path in self.folder.glob(f"{self.name}.*.missed"))

    def begin_another(self) -> list[Path]:
        """Further records go to another file; those before. Only the process that holds the place does that."""
        paths = list(self.folder.glob(f"{self.name}.*.missed"))
        known = [int(path.name.split(".")[-2]) for path in paths]  # the board may have been lost
        self.place.words[self.word] = 1 + max([int(self.place.words[self.word]), *known])
        return paths

    def read_all(self, paths: Iterable[Path]) -> dict[Missed, None]:
        """The records of these files, each once, in their order. There may be millions: others run meanwhile."""
        found: dict[Missed, None] = {}
        for path in paths:
            for count, record in enumerate(self.read(path), 1):
                found[record] = None
                if count % TURN == 0:
                    let_others_run()
        return found

    def read(self, path: Path) -> Iterator[Missed]:
        """The records of a file."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:  # another one has copied it
            return
        at = 0
        while at + HEAD.size <= len(data):
            crc, size = HEAD.unpack_from(data, at)
            payload = data[at + HEAD.size : at + HEAD.size + size]
            if len(payload) < size or crc32(payload) != crc:
                return
            yield int.from_bytes(payload[:2], "big"), payload[2:]
            at += HEAD.size + size

    def close(self) -> None:
        """Write no more."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd, self.generation = -1, -1


def _name_to_disk(folder: Path) -> None:
    """A file that is new there: fsync(2) of the file does not say that its name is on the disk as well."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _record(missed: Missed) -> bytes:
    db, key = missed
    payload = db.to_bytes(2, "big") + key
    return HEAD.pack(crc32(payload), len(payload)) + payload
