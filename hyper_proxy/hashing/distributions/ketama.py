"""twemproxy's ketama: 160 points per server of equal weight, from MD5 digests of "name-0" to "name-39".

twemproxy computes the number of points in float; every product is rounded to 32 bits here too, since one point more
or less moves keys. Of equal points the one of the server that is listed first wins. twemproxy leaves that to qsort, and
sorts the servers by name before: observed with glibc 2.36, the first of those wins.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from hashlib import md5

from hyper_proxy.hashing.lookup import Ring
from hyper_proxy.hashing.names import Server, ring_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

POINTS_PER_SERVER = 160
POINTS_PER_DIGEST = 4


def float32(x: float) -> float:
    """x rounded to single precision."""
    rounded: float = struct.unpack("f", struct.pack("f", x))[0]
    return rounded


def digests_of(weight: int, total: int, live: int) -> int:
    """How many MD5 digests, each worth four points, a server of this weight has among `live` servers of `total`."""
    share = float32(float32(weight) / float32(total))
    scaled = float32(float32(float32(share * POINTS_PER_SERVER) / POINTS_PER_DIGEST) * float32(live))
    return math.floor(float32(scaled + 1e-10))


def points_of(name: str, digests: int) -> list[int]:
    """The points of one server: four little-endian words of each digest."""
    return [
        point
        for i in range(digests)
        for point in struct.unpack("<4I", md5(f"{name}-{i}".encode(), usedforsecurity=False).digest())
    ]


def sort_points(points: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """(point, owner) in the order of the ring; equal points keep the order of their servers."""
    return sorted(points, key=lambda point: point[0])


def weighted_points(servers: Sequence[Server], name: Callable[[Server], str] = ring_name) -> list[tuple[int, int]]:
    """The whole ring as (point, index of the server)."""
    total = sum(server.weight for server in servers)
    return sort_points(
        (point, index)
        for index, server in enumerate(servers)
        for point in points_of(name(server), digests_of(server.weight, total, len(servers)))
    )


def ketama(recipe: Recipe) -> Placement:
    """twemproxy's `distribution: ketama`."""
    return Ring(len(recipe.servers), recipe.hash, recipe.hash_tag, weighted_points(recipe.servers))
