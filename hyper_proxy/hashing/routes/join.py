# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The two ways in which placements make one: as parts of the key space, or as several homes of each key."""

from __future__ import annotations

from collections.abc import Sequence

import cython

if not cython.compiled:
    from hyper_proxy.hashing.placement import Placement


@cython.cclass
class Sum(Placement):
    """Each key belongs to one of `parts`, which `which` chooses; the shards are those of one part after the other."""

    def __init__(self, parts: Sequence[Placement]) -> None:
        super().__init__(sum([part.shards for part in parts]))
        self.parts = list(parts)
        self.offsets = [sum([part.shards for part in parts[:index]]) for index in range(len(parts))]

    @cython.ccall
    def locate(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        index: cython.Py_ssize_t = self.which(buf, start, end)
        part: Placement = self.parts[index]
        offset: cython.Py_ssize_t = self.offsets[index]
        return offset + part.locate(buf, start, end)

    @cython.ccall
    def which(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The index of the part to which the key buf[start:end] belongs."""
        raise NotImplementedError(f"{type(self).__name__} does not define which()")

    def everywhere(self, key: bytes) -> list[int]:
        return self.of_parts(key, [self.which(key, 0, len(key))])

    def of_parts(self, key: bytes, indexes: Sequence[int]) -> list[int]:
        """All shards of a key in these parts."""
        return [self.offsets[index] + shard for index in indexes for shard in self.parts[index].everywhere(key)]

    def explain(self, key: bytes) -> dict[str, object]:
        return {**self.parts[self.which(key, 0, len(key))].explain(key), "shard": self.locate(key, 0, len(key))}


@cython.cclass
class Product(Placement):
    """Each key has a place in each of `parts`; there is a shard for each combination, the last part's run fastest."""

    def __init__(self, parts: Sequence[Placement]) -> None:
        shards = 1
        for part in parts:
            shards *= part.shards
        super().__init__(shards)
        self.parts = list(parts)

    @cython.ccall
    def locate(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        shard: cython.Py_ssize_t = 0
        part: Placement
        for part in self.parts:
            shard = shard * part.shards + part.locate(buf, start, end)
        return shard

    def everywhere(self, key: bytes) -> list[int]:
        shards = [0]
        for part in self.parts:
            shards = [shard * part.shards + at for shard in shards for at in part.everywhere(key)]
        return shards

    def explain(self, key: bytes) -> dict[str, object]:
        return {**self.parts[0].explain(key), "shard": self.locate(key, 0, len(key))}
