"""twemproxy's modula and random.

twemproxy sorts the servers of a pool by name before; here they stand as they are listed (docs/hashing.md says in what
order to list them).
"""

from __future__ import annotations

import random as generator

from hyper_proxy.hashing.lookup import Table
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe


def modula(recipe: Recipe) -> Placement:
    """Each server stands in a list as often as its weight says; hash modulo the length of the list."""
    table = [index for index, server in enumerate(recipe.servers) for _ in range(server.weight)]
    return Table(len(recipe.servers), recipe.hash, recipe.hash_tag, table)


class Random(Placement):
    """A server drawn anew for every request, all alike."""

    def choose(self, buf: bytes, start: int, end: int) -> int:
        """Any shard, whatever the key."""
        return generator.randrange(self.shards)


def random(recipe: Recipe) -> Placement:
    """twemproxy's `distribution: random`."""
    return Random(len(recipe.servers))
