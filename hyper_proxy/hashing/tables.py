"""All hash functions and distributions by the names they have in a configuration.

To add one: a file in functions/ or distributions/, and a row here (docs/hashing.md shows both).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hyper_proxy.hashing.distributions.ketama import ketama
from hyper_proxy.hashing.distributions.modula import modula, random
from hyper_proxy.hashing.functions.crc import Crc16, Crc32
from hyper_proxy.hashing.functions.fnv import Fnv1aOf32, Fnv1aOf64, Fnv1Of32, Fnv1Of64
from hyper_proxy.hashing.functions.hsieh import Hsieh
from hyper_proxy.hashing.functions.jenkins import Jenkins, OneAtATime
from hyper_proxy.hashing.functions.md5 import Md5
from hyper_proxy.hashing.functions.murmur import Murmur2, Murmur3
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.options import nothing, signedness
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe


@dataclass(frozen=True, slots=True)
class HashRow:
    """A hash function: `make` gets the options behind the name; `options` is their grammar for the reader."""

    make: Callable[[tuple[str, ...]], Hash]
    help: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class DistributionRow:
    """A distribution.

    hash   the hash used when the configuration names none; None: it has its own and ignores the configured one
    """

    make: Callable[[Recipe], Placement]
    help: str
    hash: str | None
    options: str = ""


UNSIGNED = "[-unsigned]"

HASHES: dict[str, HashRow] = {
    "one_at_a_time": HashRow(signedness(OneAtATime), "Jenkins' one-at-a-time", UNSIGNED),
    "md5": HashRow(nothing(Md5), "first 32 bits of MD5, little endian"),
    "crc16": HashRow(nothing(Crc16), "twemproxy's CRC-16, not cut to 16 bits"),
    "crc32": HashRow(nothing(lambda: Crc32(16, 0x7FFF)), "15 bits of CRC-32, as libmemcached has it"),
    "crc32a": HashRow(nothing(Crc32), "CRC-32 as zlib has it"),
    "fnv1_64": HashRow(signedness(Fnv1Of64), "low half of the 64-bit FNV-1", UNSIGNED),
    "fnv1a_64": HashRow(signedness(Fnv1aOf64), "twemproxy's default; 32 bits in spite of its name", UNSIGNED),
    "fnv1_32": HashRow(signedness(Fnv1Of32), "FNV-1 of 32 bits", UNSIGNED),
    "fnv1a_32": HashRow(signedness(Fnv1aOf32), "FNV-1a of 32 bits", UNSIGNED),
    "hsieh": HashRow(signedness(Hsieh), "SuperFastHash, started from 0", UNSIGNED),
    "murmur": HashRow(nothing(Murmur2), "MurmurHash2 of 32 bits, seed 0xdeadbeef * length"),
    "jenkins": HashRow(nothing(Jenkins), "lookup3, initval 13"),
    "murmur3": HashRow(nothing(Murmur3), "MurmurHash3 of 32 bits, seed 0xdeadbeef * length (libmemcached)"),
}

DISTRIBUTIONS: dict[str, DistributionRow] = {
    "ketama": DistributionRow(ketama, "twemproxy's ring: 160 MD5 points per server, weighted", "fnv1a_64"),
    "modula": DistributionRow(modula, "hash modulo the weighted list of servers", "fnv1a_64"),
    "random": DistributionRow(random, "any server, anew for every request", None),
}
