"""The distributions of Weibo's proxies (weibocom/breeze, sharding/src/distribution); weights do not count.

The option S is the number of slots. range and modrange want a power of two of servers; `-nocheck` says that another
number is meant.
"""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.hashing.distributions.divmod import SIGNED, SIGNED_32, UNSIGNED, DivMod
from hyper_proxy.hashing.distributions.ketama import points_of, sort_points
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.lookup import Ring
from hyper_proxy.hashing.names import full_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

DIGESTS = 40
RANGE_SLOTS = 256
SPLIT_SLOTS = 32
SLOT_SLOTS = 1024
NO_CHECK = "nocheck"


def slots_of(recipe: Recipe, default: int) -> int:
    """The option S, checked against the number of servers."""
    options = tuple(option for option in recipe.options if option != NO_CHECK)
    slots = Recipe(recipe.name, options, recipe.hash, recipe.hash_tag, recipe.servers).number(default)
    if slots < len(recipe.servers):
        raise HashingError(f"'{recipe.name}': {slots} slots are not enough for {len(recipe.servers)} servers")
    return slots


def ranges(slots: int, shards: int) -> list[int]:
    """The shard of each slot, in ranges of slots / shards; what is left over belongs to the last."""
    return [min(slot // (slots // shards), shards - 1) for slot in range(slots)]


def turns(slots: int, shards: int) -> list[int]:
    """The shard of each slot, in turn."""
    return [slot % shards for slot in range(slots)]


def spread(recipe: Recipe, table: list[int], divisor: int = 1, reading: int = SIGNED) -> Placement:
    """A placement by a table of slots."""
    assert recipe.hash is not None
    return DivMod(len(recipe.servers), recipe.hash, recipe.hash_tag, table, divisor, reading)


def modula(recipe: Recipe) -> Placement:
    """Unsigned hash mod n."""
    return spread(recipe, list(range(len(recipe.servers))), reading=UNSIGNED)


def absmodula(recipe: Recipe) -> Placement:
    """|hash of 32 bits| mod n."""
    return spread(recipe, list(range(len(recipe.servers))), reading=SIGNED_32)


def secmod(recipe: Recipe) -> Placement:
    """(hash / n) mod n."""
    shards = len(recipe.servers)
    return spread(recipe, list(range(shards)), divisor=shards, reading=UNSIGNED)


def range_(recipe: Recipe) -> Placement:
    """((hash / S) mod S) / (S / n)."""
    slots = slots_of(recipe, RANGE_SLOTS)
    return spread(recipe, ranges(slots, len(recipe.servers)), divisor=slots)


def modrange(recipe: Recipe) -> Placement:
    """(hash mod S) / (S / n)."""
    return spread(recipe, ranges(slots_of(recipe, RANGE_SLOTS), len(recipe.servers)))


def splitmod(recipe: Recipe) -> Placement:
    """((hash / S) mod S) mod n."""
    slots = slots_of(recipe, SPLIT_SLOTS)
    return spread(recipe, turns(slots, len(recipe.servers)), divisor=slots)


def slotmod(recipe: Recipe) -> Placement:
    """(hash mod S) mod n."""
    return spread(recipe, turns(slots_of(recipe, SLOT_SLOTS), len(recipe.servers)))


def ring(recipe: Recipe, reduce: Callable[[int], int]) -> Placement:
    """40 MD5 digests per server, each point reduced; of equal points the server listed last wins."""
    owners = {
        reduce(point): index
        for index, server in enumerate(recipe.servers)
        for point in points_of(full_name(server), DIGESTS)
    }
    return Ring(len(recipe.servers), recipe.hash, recipe.hash_tag, sort_points(owners.items()), bits=64)


def ketama(recipe: Recipe) -> Placement:
    """Points modulo 2**31 - 1, keys as they are."""
    return ring(recipe, lambda point: point % 0x7FFFFFFF)


def ketama_origin(recipe: Recipe) -> Placement:
    """Points as they are: twemproxy's ring with equal weights."""
    return ring(recipe, lambda point: point)
