"""What the configuration has to know of the code that will run it: the names of hashes, distributions and commands.

The only file of this folder that looks at another one, and only when a file is read: importing the configuration stays cheap, and
the supervisor, which reads none itself, stays small.
"""

from __future__ import annotations

_TWEMPROXY = ("one_at_a_time md5 crc16 crc32 crc32a fnv1_64 fnv1a_64 fnv1_32 fnv1a_32 hsieh murmur jenkins").split()


def hash_names() -> list[str]:
    """All hash functions."""
    from hyper_proxy import hashing

    return list(getattr(hashing, "HASHES", _TWEMPROXY))


def distribution_names() -> list[str]:
    """All distributions."""
    from hyper_proxy import hashing

    return list(getattr(hashing, "DISTRIBUTIONS", ("ketama", "modula", "random")))
