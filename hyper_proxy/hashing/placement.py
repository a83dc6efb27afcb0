# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What every distribution is: a function from a key to the index of its shard.

locate()  cuts out the hash tag     the data path calls this one
choose()  key bytes to shard        overridden by the few distributions that need the bytes themselves
shard_of()  hash value to shard     overridden by all others
"""

import cython

from hyper_proxy.hashing.hash import Hash


@cython.cclass
class Placement:
    """Base of all placements.

    shards      number of servers to choose from
    hash        the hash function; None for a distribution that uses none
    hash_tag    two characters, or empty: only what stands between the first of them and the next second one is hashed,
                if anything stands there (twemproxy's rule, and with {} that of a redis cluster)
    empty_tag   the tag also counts when nothing stands there (Codis)
    """

    def __init__(self, shards: int, hash: Hash | None = None, hash_tag: bytes = b"", empty_tag: bool = False) -> None:
        self.shards = shards
        # Never None: a method call on None is not checked in compiled code.
        self.hash = Hash() if hash is None else hash
        self.opening, self.closing = hash_tag if hash_tag else (-1, -1)
        self.empty_tag = empty_tag

    @cython.ccall
    def locate(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The shard, 0 to shards-1, of the key buf[start:end]."""
        inner: cython.Py_ssize_t
        if self.shards == 1:
            return 0
        if self.opening >= 0:
            inner = self.tag_start(buf, start, end)
            if inner > start:
                return self.choose(buf, inner, self.tag_end(buf, inner, end))
        return self.choose(buf, start, end)

    @cython.ccall
    def choose(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The shard of the part of the key that is hashed."""
        return self.shard_of(self.hash.value(buf, start, end))

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The shard of a hash value."""
        raise NotImplementedError(f"{type(self).__name__} does not define shard_of()")

    @cython.cfunc
    def tag_start(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """Where the text in the hash tag starts (always after `start`), or `start` when the key has no valid tag."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        inner: cython.Py_ssize_t
        while i < end and p[i] != self.opening:
            i += 1
        inner = i + 1
        i = inner
        while i < end and p[i] != self.closing:
            i += 1
        if i >= end or (i == inner and not self.empty_tag):
            return start
        return inner

    @cython.cfunc
    def tag_end(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        """The end of the text in the hash tag that starts at `start`; the closing character is known to be there."""
        p: cython.p_uchar = buf
        i: cython.Py_ssize_t = start
        while i < end and p[i] != self.closing:
            i += 1
        return i

    def everywhere(self, key: bytes) -> list[int]:
        """All shards at which somebody may look for a key, who may have another time or has looked at it before."""
        return [self.locate(key, 0, len(key))]

    def hashed(self, key: bytes) -> bytes:
        """The part of the key that is hashed."""
        if self.opening < 0:
            return key
        inner = self.tag_start(key, 0, len(key))
        return key[inner : self.tag_end(key, inner, len(key))] if inner > 0 else key

    def explain(self, key: bytes) -> dict[str, object]:
        """How the key is placed: `hashed` (bytes), `hash` (its value, or None where no hash is used), `shard`."""
        part = self.hashed(key)
        value = None if type(self.hash) is Hash else self.hash.value(part, 0, len(part))
        return {"hashed": part, "hash": value, "shard": self.locate(key, 0, len(key))}
