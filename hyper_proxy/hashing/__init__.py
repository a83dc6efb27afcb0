"""Layer 4: key to shard: hash functions, distributions, hash tags, ring names.

Pure functions of the key and the list of servers, bit for bit those of the systems they are named after.
Must never know whether a server is alive.
"""

from hyper_proxy.hashing.build import build, build_hash
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.names import ring_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.tables import DISTRIBUTIONS, HASHES, DistributionRow, HashRow
from hyper_proxy.hashing.traps import warnings

__all__ = [
    "DISTRIBUTIONS",
    "HASHES",
    "DistributionRow",
    "Hash",
    "HashRow",
    "HashingError",
    "Placement",
    "build",
    "build_hash",
    "ring_name",
    "warnings",
]
