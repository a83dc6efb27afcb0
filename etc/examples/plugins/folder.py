"""A storage that answers from a directory of files, as a plug-in: a key is the name of a file, its content the value.

    [proxy]
    plugins = ["examples/plugins/folder.py"]

    [[instance.level]]
    storage = "folder"
    servers = ["pages"]                  # a directory; several: keys are spread over them, as over servers

Every front can serve it, and it can be the last of several levels. A file has neither flags nor a time of expiry nor a
version, so values with these are refused. What a worker writes is seen by all at once: a file is exchanged as a whole.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from hyper_proxy import plugin

T = TypeVar("T")

LONGEST_NAME = 240  # the longest name of a file is 255; what is being written has a longer one
SUFFIX = ".value"


@plugin.storage("folder", files=True)
class Folder(plugin.KeyValue):
    """One directory. Its functions run in threads of the proxy, so they may wait for the disk."""

    keeps_versions = False

    def __init__(self, server: plugin.Server, level: plugin.Level) -> None:
        self.path = Path(server.file)
        self.path.mkdir(parents=True, exist_ok=True)

    def get_many(self, keys: Sequence[bytes]) -> list[plugin.Item | None]:
        """What the files say now."""
        return [self._read(key) for key in keys]

    def update(self, keys: Sequence[bytes], change: plugin.Change[T]) -> tuple[T, tuple[int, ...]]:
        """Read, change and write while nobody else writes, in this process or another."""
        with self._locked():
            edits, result = change(self.get_many(keys))
            for edit in edits:
                _check(edit)
            for key, edit in zip(keys, edits, strict=True):
                if isinstance(edit, plugin.Put):
                    self._write(key, edit.value)
                elif isinstance(edit, plugin.Remove):
                    self._file(key).unlink(missing_ok=True)
        return result, (0,) * len(keys)

    def put_many(self, entries: Sequence[tuple[bytes, plugin.Put]]) -> None:
        """Write all of them."""
        self.update([key for key, _ in entries], lambda items: ([put for _, put in entries], None))

    def count(self) -> int:
        """The number of files."""
        return sum(1 for _ in self._keys())

    def scan(self, cursor: int, limit: int) -> tuple[int, list[bytes]]:
        """In the order of a hash of the keys, which stays whatever else comes and goes; the cursor is the last one."""
        rows = sorted((place, key) for key in self._keys() if (place := _place(key)) > cursor)
        if len(rows) <= limit:
            return 0, [key for _, key in rows]
        last = rows[limit - 1][0]
        return last, [key for place, key in rows if place <= last]

    def clear(self) -> None:
        """Remove all files."""
        with self._locked():
            for key in list(self._keys()):
                self._file(key).unlink(missing_ok=True)

    def _keys(self) -> Iterator[bytes]:
        return (unquote_to_bytes(name.removesuffix(SUFFIX)) for name in os.listdir(self.path) if name.endswith(SUFFIX))

    def _file(self, key: bytes) -> Path:
        """A name that no key can leave the directory with: everything but letters, digits, "_" and "-" is escaped."""
        name = quote_from_bytes(key, safe="").replace(".", "%2E").replace("~", "%7E")
        if len(name) > LONGEST_NAME:
            raise plugin.ClientError(f"the key is too long for the name of a file: {len(name)} of {LONGEST_NAME}")
        return self.path / f"{name}{SUFFIX}"

    def _read(self, key: bytes) -> plugin.Item | None:
        with suppress(FileNotFoundError):
            return plugin.Item(self._file(key).read_bytes(), flags=0, expires_at=None, version=0)
        return None

    def _write(self, key: bytes, value: bytes) -> None:
        file = self._file(key)
        fresh = file.with_suffix(".new")
        fresh.write_bytes(value)
        fresh.replace(file)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.path / ".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _place(key: bytes) -> int:
    return 1 + int.from_bytes(blake2b(key, digest_size=6).digest())


def _check(edit: plugin.Edit) -> None:
    """Raises ClientError for what a file cannot keep."""
    if isinstance(edit, plugin.Put) and edit.flags:
        raise plugin.ClientError("a file keeps no flags")
    if isinstance(edit, plugin.Put | plugin.Expire) and edit.expires_at is not None:
        raise plugin.ClientError("a file keeps no time of expiry")
