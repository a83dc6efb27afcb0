# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""mcrouter's rendezvous hashing: each server is scored with the key, the highest score wins.

Sources: facebook/mcrouter mcrouter/lib/RendezvousHashFunc.cpp and WeightedRendezvousHashFunc.h; the mix is CityHash's
Hash128to64. A lookup costs one mix per server.
"""

from array import array

import cython

from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.placement import Placement

if cython.compiled:
    from cython.cimports.libc.math import log
else:
    from math import log

K = cython.declare(cython.ulonglong, 0x9DDFEA08EB382D69)
MANTISSA = cython.declare(cython.ulonglong, (1 << 53) - 1)


@cython.cfunc
@cython.inline
def mix(server: cython.ulonglong, key: cython.ulonglong) -> cython.ulonglong:
    """64 bits from the hashes of a server and of a key."""
    a: cython.ulonglong = (key ^ server) * K
    b: cython.ulonglong
    if not cython.compiled:
        a &= 0xFFFFFFFFFFFFFFFF
    a ^= a >> 47
    b = (server ^ a) * K
    if not cython.compiled:
        b &= 0xFFFFFFFFFFFFFFFF
    b = (b ^ (b >> 47)) * K
    if not cython.compiled:
        b &= 0xFFFFFFFFFFFFFFFF
    return b


@cython.cclass
class Rendezvous(Placement):
    """Without weights; of equal scores the last wins."""

    servers: cython.ulonglong[::1]

    def __init__(self, hash: Hash, hash_tag: bytes, servers: list[int]) -> None:
        super().__init__(len(servers), hash, hash_tag)
        self.servers = array("Q", servers)

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The server with the highest score; scores are compared as doubles, so some of 64 bits are equal."""
        best: cython.Py_ssize_t = 0
        highest: cython.double = -1.0
        score: cython.double
        i: cython.Py_ssize_t
        for i in range(self.shards):
            score = cython.cast(cython.double, mix(self.servers[i], value))
            if score >= highest:
                highest = score
                best = i
        return best


@cython.cclass
class WeightedRendezvous(Placement):
    """With weights; of equal scores the first wins."""

    servers: cython.ulonglong[::1]
    weights: cython.double[::1]

    def __init__(self, hash: Hash, hash_tag: bytes, servers: list[int], weights: list[float]) -> None:
        super().__init__(len(servers), hash, hash_tag)
        self.servers = array("Q", servers)
        self.weights = array("d", weights)

    @cython.ccall
    def shard_of(self, value: cython.ulonglong) -> cython.Py_ssize_t:
        """The server with the highest weight / -ln(x), x being the mix as a number below 1."""
        best: cython.Py_ssize_t = 0
        highest: cython.double = 0.0
        score: cython.double
        fraction: cython.ulonglong
        i: cython.Py_ssize_t
        for i in range(self.shards):
            fraction = mix(self.servers[i], value) & MANTISSA
            if fraction == 0:
                continue  # the logarithm is infinite, the score 0: never higher
            score = self.weights[i] / -log(cython.cast(cython.double, fraction) / 9007199254740992.0)
            if score > highest:
                highest = score
                best = i
        return best
