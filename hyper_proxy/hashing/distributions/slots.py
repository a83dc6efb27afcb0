"""Slots of a redis cluster (16384, CRC-16/XMODEM) and of Codis (1024, CRC-32), dealt out to the servers in ranges.

Sources: redis.io/docs/reference/cluster-spec; CodisLabs/codis pkg/proxy/mapper.go. Both always look for a hash tag
{...}; in Codis an empty one counts too, so that a key with {} is in the slot of the empty text.
"""

from __future__ import annotations

from hyper_proxy.hashing.distributions.ketama import float32
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.functions.crc import Crc16, Crc32
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.lookup import Table
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

REDIS_SLOTS = 16384
CODIS_SLOTS = 1024
TAG = b"{}"


def contiguous(slots: int, shards: int) -> list[int]:
    """The shard of each slot: equal ranges in order, with the rounding of `redis-cli --cluster create` (in float)."""
    table: list[int] = []
    share = float32(slots / shards)
    cursor = 0.0
    for shard in range(shards):
        # lround: halves go away from zero.
        last = int(float32(float32(cursor + share) - 1) + 0.5)
        if shard == shards - 1:
            last = slots - 1
        table += [shard] * (last + 1 - len(table))
        cursor = float32(cursor + share)
    return table


def slotted(recipe: Recipe, slots: int, hash: Hash, empty_tag: bool) -> Placement:
    """A placement by slots; the tag is fixed, so another one in the configuration is an error."""
    if recipe.hash_tag not in (b"", TAG):
        raise HashingError(f"'{recipe.name}' always uses the hash tag '{{}}', not '{recipe.hash_tag.decode()}'")
    shards = len(recipe.servers)
    if shards > slots:
        raise HashingError(f"'{recipe.name}' has {slots} slots, not enough for {shards} servers")
    return Table(shards, hash, TAG, contiguous(slots, shards), empty_tag)


def redis_cluster(recipe: Recipe) -> Placement:
    """As the nodes of a redis cluster place keys."""
    return slotted(recipe, REDIS_SLOTS, Crc16(cut=True), empty_tag=False)


def every_slot() -> Placement:
    """Each slot of a redis cluster is a shard, for the cluster itself says which server has it."""
    return Table(REDIS_SLOTS, Crc16(cut=True), TAG, list(range(REDIS_SLOTS)))


def codis(recipe: Recipe) -> Placement:
    """As a Codis proxy places keys."""
    return slotted(recipe, CODIS_SLOTS, Crc32(), empty_tag=True)
