"""Envoy's load balancing policies maglev and ring_hash, as its redis proxy uses them (envoyproxy.io, source under
extensions/load_balancing_policies). Keys are hashed by MurmurHash64A with seed 0xc70f6907, servers by XXH64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hyper_proxy.hashing.distributions.ketama import sort_points
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.functions.murmur import Murmur64A
from hyper_proxy.hashing.functions.xxh64 import Xxh64
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.lookup import Ring, Table
from hyper_proxy.hashing.names import Server, full_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

SEED = 0xC70F6907
MAGLEV_SIZE = 65537
RING_SIZE_LEAST = 1024
RING_SIZE_MOST = 8 * 1024 * 1024


def is_prime(number: int) -> bool:
    """Whether a small number is prime."""
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def maglev_table(servers: Sequence[Server], size: int) -> list[int]:
    """The server in each cell: in rounds, each takes its next free preferred cell, as often as its weight asks.

    The hosts take their turns in the order of their names, so the order of the list does not matter.
    """
    order = sorted(range(len(servers)), key=lambda index: full_name(servers[index]))
    names = [full_name(server).encode() for server in servers]
    offsets = [Xxh64(0).value(name, 0, len(name)) % size for name in names]
    skips = [Xxh64(1).value(name, 0, len(name)) % (size - 1) + 1 for name in names]
    steps = [0] * len(servers)
    targets = [0.0] * len(servers)
    # As fractions of the total, in double, as Envoy has them: the comparison below depends on their rounding.
    total = sum(server.weight for server in servers)
    weights = [server.weight / total for server in servers]
    heaviest = max(weights)
    table = [-1] * size
    filled = 0
    turn = 0
    while filled < size:
        turn += 1
        for index in order:
            if turn * weights[index] < targets[index]:
                continue
            targets[index] += heaviest
            cell = -1
            while cell < 0 or table[cell] >= 0:
                cell = (offsets[index] + skips[index] * steps[index]) % size
                steps[index] += 1
            table[cell] = index
            filled += 1
            if filled == size:
                break
    return table


def maglev(recipe: Recipe) -> Placement:
    """Envoy's maglev; the option is the size of the table, a prime number."""
    size = recipe.number(MAGLEV_SIZE, least=2)
    if not is_prime(size):
        raise HashingError(f"'{recipe.name}': {size} is not a prime number")
    return Table(len(recipe.servers), Murmur64A(SEED), recipe.hash_tag, maglev_table(recipe.servers, size))


def ring_points(servers: Sequence[Server], least: int, hash: Hash) -> list[tuple[int, int]]:
    """Envoy's ring: points `name_0`, `name_1`, ... of each server by its weight, at least `least` in all."""
    total = sum(server.weight for server in servers)
    lightest = min(server.weight for server in servers) / total
    scale = min(math.ceil(lightest * least) / lightest, float(RING_SIZE_MOST))
    points: list[tuple[int, int]] = []
    count = target = 0.0
    for index, server in enumerate(servers):
        target += scale * (server.weight / total)
        i = 0
        while count < target:
            text = f"{full_name(server)}_{i}".encode()
            points.append((hash.value(text, 0, len(text)), index))
            count += 1
            i += 1
    return sort_points(points)


def ring_hash(recipe: Recipe) -> Placement:
    """Envoy's ring_hash; the option is the minimum size of the ring."""
    points = ring_points(recipe.servers, recipe.number(RING_SIZE_LEAST), Xxh64())
    return Ring(len(recipe.servers), Murmur64A(SEED), recipe.hash_tag, points, bits=64)


def ring_hash_murmur(recipe: Recipe) -> Placement:
    """Envoy's ring_hash with hash_function MURMUR_HASH_2: the points too are by MurmurHash64A."""
    murmur = Murmur64A(SEED)
    points = ring_points(recipe.servers, recipe.number(RING_SIZE_LEAST), murmur)
    return Ring(len(recipe.servers), murmur, recipe.hash_tag, points, bits=64)
