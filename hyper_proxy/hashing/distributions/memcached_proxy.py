"""The rings of the proxy built into memcached (proxy_ring_hash.c), without weights, and the ring of Python's hash_ring.

memcached hashes keys by XXH3 unless told otherwise; of any hash these rings use the low 32 bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from hashlib import md5

from xxhash import xxh3_64_intdigest

from hyper_proxy.hashing.distributions.ketama import POINTS_PER_DIGEST, points_of, sort_points
from hyper_proxy.hashing.functions.md5 import Md5
from hyper_proxy.hashing.lookup import Ring
from hyper_proxy.hashing.names import Server, full_name, ring_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

BUCKETS = 160
HASH_RING_DIGESTS = 40


def md5_ring(recipe: Recipe, name: Callable[[Server], str]) -> Placement:
    """A ring of `buckets` (the option) MD5 points per server under the given names."""
    digests = recipe.number(BUCKETS, least=POINTS_PER_DIGEST) // POINTS_PER_DIGEST
    points = sort_points(
        (point, index) for index, server in enumerate(recipe.servers) for point in points_of(name(server), digests)
    )
    return Ring(len(recipe.servers), recipe.hash, recipe.hash_tag, points)


def twemproxy(recipe: Recipe) -> Placement:
    """omode "twemproxy": port 11211 is left out of the names."""
    return md5_ring(recipe, ring_name)


def ketama(recipe: Recipe) -> Placement:
    """omode "ketama": the port is always part of the name."""
    return md5_ring(recipe, full_name)


def evcache_name(server: Server) -> str:
    """Netflix EVCache's name of a server, `host/host:port`."""
    return server.name or f"{server.host}/{full_name(server)}"


def evcache(recipe: Recipe) -> Placement:
    """omode "evcache"."""
    return md5_ring(recipe, evcache_name)


def default(recipe: Recipe) -> Placement:
    """The ring without omode: the low 32 bits of XXH3 of "host:port-i"."""
    points = sort_points(
        (xxh3_64_intdigest(f"{full_name(server)}-{i}".encode()) & 0xFFFFFFFF, index)
        for index, server in enumerate(recipe.servers)
        for i in range(recipe.number(BUCKETS))
    )
    return Ring(len(recipe.servers), recipe.hash, recipe.hash_tag, points)


def hash_ring(recipe: Recipe) -> Placement:
    """Python's hash_ring: three of the four words of 40 MD5 digests per server of average weight, keys by MD5.

    A key whose hash equals a point belongs to the next point, so each point is entered one lower; of equal points the
    last wins.
    """
    total = sum(server.weight for server in recipe.servers)
    owners: dict[int, int] = {}
    for index, server in enumerate(recipe.servers):
        for i in range(math.floor(HASH_RING_DIGESTS * len(recipe.servers) * server.weight / total)):
            digest = md5(f"{full_name(server)}-{i}".encode(), usedforsecurity=False).digest()
            owners.update((point, index) for point in struct.unpack("<3I", digest[:12]))
    points = sort_points((max(point - 1, 0), index) for point, index in owners.items())
    return Ring(len(recipe.servers), Md5(), recipe.hash_tag, points)
