"""All hash functions and distributions by the names they have in a configuration.

To add one: a file in functions/ or distributions/, and a row here (docs/hashing.md shows both).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hyper_proxy.hashing.distributions import (
    envoy,
    jump,
    ketama,
    libmemcached,
    mcrouter,
    memcached_proxy,
    modula,
    slots,
    weibo,
)
from hyper_proxy.hashing.functions.crc import Crc16, Crc32
from hyper_proxy.hashing.functions.fnv import Fnv1aOf32, Fnv1aOf64, Fnv1Of32, Fnv1Of64
from hyper_proxy.hashing.functions.hsieh import Hsieh
from hyper_proxy.hashing.functions.jenkins import Jenkins, OneAtATime
from hyper_proxy.hashing.functions.md5 import Md5
from hyper_proxy.hashing.functions.murmur import Murmur2, Murmur3
from hyper_proxy.hashing.functions.parts import Behind, Between, PartHash
from hyper_proxy.hashing.functions.weibo import (
    Bkdr,
    BkdrCrc32,
    Crc32Absolute,
    Crc32MixedNumber,
    Crc64,
    LongBytesCrc32,
    Raw,
    RawOrCrc32,
)
from hyper_proxy.hashing.functions.xxh3 import Xxh3
from hyper_proxy.hashing.functions.xxh64 import Xxh64
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.options import Factory, delimiter, nothing, signedness
from hyper_proxy.hashing.options import weibo as weibo_parts
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe


@dataclass(frozen=True, slots=True)
class HashRow:
    """A hash function.

    make     from the options behind the name to the hash; raises HashingError
    help     one line
    options  their grammar, empty when there are none
    bits     how many bits the values have
    """

    make: Factory
    help: str
    options: str = ""
    bits: int = 32


@dataclass(frozen=True, slots=True)
class DistributionRow:
    """A distribution.

    make     from a Recipe to the placement; raises HashingError
    help     one line
    hash     the hash that is used when the configuration names none; None: it has its own and ignores that of the
             configuration
    options  their grammar, empty when there are none
    weights  whether the weights of the servers count
    names    whether the names of the servers decide (a ring or the like), rather than their order
    powers   whether the number of servers should be a power of two
    """

    make: Callable[[Recipe], Placement]
    help: str
    hash: str | None
    options: str = ""
    weights: bool = False
    names: bool = False
    powers: bool = False


UNSIGNED = "[-unsigned]"
CRC32_FORMS = "[-short|-num[-P]|-point[-P]|-underscore[-P]|-pound[-P]|-smartnum|-mixnum]"
LOCAL_FORMS = "[-point[-P]|-underscore[-P]|-pound[-P]|-smartnum]"


def crc32_short() -> Hash:
    """15 bits of CRC-32."""
    return Crc32(16, 0x7FFF)


HASHES: dict[str, HashRow] = {
    "one_at_a_time": HashRow(signedness(OneAtATime), "Jenkins' one-at-a-time", UNSIGNED),
    "md5": HashRow(nothing(Md5), "first 32 bits of MD5, little endian"),
    "crc16": HashRow(nothing(Crc16), "twemproxy's CRC-16, not cut to 16 bits"),
    "crc32": HashRow(nothing(crc32_short), "15 bits of CRC-32, as libmemcached has it", bits=15),
    "crc32a": HashRow(nothing(Crc32), "CRC-32 as zlib has it"),
    "fnv1_64": HashRow(signedness(Fnv1Of64), "low half of the 64-bit FNV-1", UNSIGNED),
    "fnv1a_64": HashRow(signedness(Fnv1aOf64), "twemproxy's default; 32 bits in spite of its name", UNSIGNED),
    "fnv1_32": HashRow(signedness(Fnv1Of32), "FNV-1 of 32 bits", UNSIGNED),
    "fnv1a_32": HashRow(signedness(Fnv1aOf32), "FNV-1a of 32 bits", UNSIGNED),
    "hsieh": HashRow(signedness(Hsieh), "SuperFastHash, started from 0", UNSIGNED),
    "murmur": HashRow(nothing(Murmur2), "MurmurHash2 of 32 bits, seed 0xdeadbeef * length"),
    "jenkins": HashRow(nothing(Jenkins), "lookup3, initval 13"),
    "murmur3": HashRow(nothing(Murmur3), "MurmurHash3 of 32 bits, seed 0xdeadbeef * length (libmemcached)"),
    "xxh64": HashRow(nothing(Xxh64), "XXH64, seed 0", bits=64),
    "xxh3_64": HashRow(nothing(Xxh3), "XXH3 of 64 bits, seed 0 (memcached's proxy)", bits=64),
    "weibo_bkdr": HashRow(nothing(Bkdr), "BKDR, seed 31, absolute value", bits=31),
    "weibo_bkdrsub": HashRow(
        nothing(lambda: PartHash(Between(b"#", b"_"), Bkdr(131, cut=True))), "BKDR, seed 131, from # to _", bits=31
    ),
    "weibo_bkdrsubhat": HashRow(
        nothing(lambda: PartHash(Between(b"#", b"^"), Bkdr(131, cut=True))), "BKDR, seed 131, from # to ^", bits=31
    ),
    "weibo_bkdrabscrc32": HashRow(nothing(BkdrCrc32), "leading digits: BKDR, in decimal, CRC-32"),
    "weibo_crc32": HashRow(
        weibo_parts(Crc32, {"short": crc32_short, "mixnum": Crc32MixedNumber}, numbers=True),
        "CRC-32 of the key or a part of it, from byte P on; memcache services meant -short by plain crc32",
        CRC32_FORMS,
    ),
    "weibo_crc32abs": HashRow(nothing(Crc32Absolute), "CRC-32 as a signed number, without its sign", bits=31),
    "weibo_crc32local": HashRow(
        weibo_parts(Crc32Absolute, {}), "crc32abs of the key or a part of it", LOCAL_FORMS, bits=31
    ),
    "weibo_lbcrc32local": HashRow(
        nothing(LongBytesCrc32), "leading digits as 8 big-endian bytes, their crc32abs", bits=31
    ),
    "weibo_rawcrc32local": HashRow(nothing(RawOrCrc32), "digits to the end or _: that number; else crc32abs", bits=64),
    "weibo_raw": HashRow(nothing(Raw), "the leading digits as a number", bits=64),
    "weibo_rawsuffix": HashRow(
        delimiter(lambda mark: PartHash(Behind(mark), Raw(strict=True))),
        "the number behind the delimiter",
        "-point|-underscore|-pound",
        bits=64,
    ),
    "weibo_crc64": HashRow(nothing(Crc64), "CRC-64 with Jones' polynomial, signed", bits=64),
    "weibo_fnv1_32": HashRow(nothing(lambda: Fnv1Of32(False)), "fnv1_32-unsigned"),
    "weibo_fnv1a_64": HashRow(nothing(lambda: Fnv1aOf64(False)), "fnv1a_64-unsigned"),
}

TWEMPROXY = "fnv1a_64"
LIBMEMCACHED = "one_at_a_time"
XXH3 = "xxh3_64"
WEIBO = "weibo_crc32"
SALT = "[-salt=TEXT]"
SALT_AND_WHOLE = "[-whole=N][-salt=TEXT]"

DISTRIBUTIONS: dict[str, DistributionRow] = {
    "ketama": DistributionRow(
        ketama.ketama, "twemproxy's ring: 160 MD5 points per server", TWEMPROXY, weights=True, names=True
    ),
    "modula": DistributionRow(
        modula.modula,
        "hash modulo the weighted list of servers, which twemproxy sorts by name",
        TWEMPROXY,
        weights=True,
    ),
    "random": DistributionRow(modula.random, "any server, anew for every request", None),
    "libmemcached_modula": DistributionRow(libmemcached.modula, "hash modulo number of servers", LIBMEMCACHED),
    "libmemcached_ketama": DistributionRow(
        libmemcached.ketama,
        "KETAMA, CONSISTENT: 100 points per server by the same hash; weighted when a weight is above 1",
        LIBMEMCACHED,
        weights=True,
        names=True,
    ),
    "libmemcached_ketama_weighted": DistributionRow(
        libmemcached.ketama_weighted, "KETAMA_WEIGHTED: ketama with md5", None, weights=True, names=True
    ),
    "libmemcached_consistent_weighted": DistributionRow(
        libmemcached.consistent_weighted, "distribution 5 set by itself", LIBMEMCACHED, weights=True, names=True
    ),
    "libmemcached_ketama_spy": DistributionRow(
        libmemcached.ketama_spy,
        "KETAMA_SPY with KETAMA_WEIGHTED: MD5 points of /host:port (hash md5 for spymemcached)",
        LIBMEMCACHED,
        weights=True,
        names=True,
    ),
    "libmemcached_ketama_spy_plain": DistributionRow(
        libmemcached.ketama_spy_plain, "KETAMA_SPY alone: 100 points by the same hash", LIBMEMCACHED, names=True
    ),
    "memcached_proxy_ring": DistributionRow(
        memcached_proxy.default, "memcached's proxy, ring_hash: XXH3 points", XXH3, "[-BUCKETS]", names=True
    ),
    "memcached_proxy_ketama": DistributionRow(
        memcached_proxy.ketama, "omode ketama: MD5 points, port always named", XXH3, "[-BUCKETS]", names=True
    ),
    "memcached_proxy_twemproxy": DistributionRow(
        memcached_proxy.twemproxy, "omode twemproxy: twemproxy's ring without weights", XXH3, "[-BUCKETS]", names=True
    ),
    "memcached_proxy_evcache": DistributionRow(
        memcached_proxy.evcache, "omode evcache: MD5 points of host/host:port", XXH3, "[-BUCKETS]", names=True
    ),
    "hash_ring": DistributionRow(
        memcached_proxy.hash_ring, "Python's hash_ring: three points per MD5 digest", None, weights=True, names=True
    ),
    "mcrouter_ch3": DistributionRow(mcrouter.ch3, "mcrouter's default", None, SALT),
    "mcrouter_crc32": DistributionRow(mcrouter.crc32, "31 bits of CRC-32 modulo number of servers", None, SALT),
    "mcrouter_weighted_ch3": DistributionRow(
        mcrouter.weighted_ch3, "ch3, tried again by weight; N is the weight of 1.0", None, SALT_AND_WHOLE, weights=True
    ),
    "mcrouter_rendezvous": DistributionRow(
        mcrouter.rendezvous, "the highest score of key and name", None, SALT, names=True
    ),
    "mcrouter_weighted_rendezvous": DistributionRow(
        mcrouter.weighted_rendezvous, "the same, by weight", None, SALT_AND_WHOLE, weights=True, names=True
    ),
    "redis_cluster": DistributionRow(slots.redis_cluster, "16384 slots in equal ranges, tag {} always", None),
    "codis": DistributionRow(slots.codis, "1024 slots in equal ranges, tag {} always, even empty", None),
    "jump": DistributionRow(jump.jump, "jump consistent hash of all bits of the hash", "xxh64"),
    "envoy_maglev": DistributionRow(
        envoy.maglev, "Envoy's maglev; M is the size of the table", None, "[-M]", weights=True, names=True
    ),
    "envoy_ring_hash": DistributionRow(
        envoy.ring_hash, "Envoy's ring_hash; MIN is the size of the ring", None, "[-MIN]", weights=True, names=True
    ),
    "envoy_ring_hash_murmur": DistributionRow(
        envoy.ring_hash_murmur, "ring_hash with MURMUR_HASH_2", None, "[-MIN]", weights=True, names=True
    ),
    "weibo_modula": DistributionRow(weibo.modula, "hash mod n", WEIBO),
    "weibo_absmodula": DistributionRow(weibo.absmodula, "|hash as 32 bits| mod n", WEIBO),
    "weibo_range": DistributionRow(
        weibo.range_, "((hash / S) mod S) / (S / n), S = 256", WEIBO, "[-S][-nocheck]", powers=True
    ),
    "weibo_modrange": DistributionRow(
        weibo.modrange, "(hash mod S) / (S / n), S = 256", WEIBO, "[-S][-nocheck]", powers=True
    ),
    "weibo_splitmod": DistributionRow(weibo.splitmod, "((hash / S) mod S) mod n, S = 32", WEIBO, "[-S]"),
    "weibo_slotmod": DistributionRow(weibo.slotmod, "(hash mod S) mod n, S = 1024", WEIBO, "[-S]"),
    "weibo_secmod": DistributionRow(weibo.secmod, "(hash / n) mod n", WEIBO),
    "weibo_ketama": DistributionRow(weibo.ketama, "160 MD5 points modulo 2^31 - 1", WEIBO, names=True),
    "weibo_ketama_origin": DistributionRow(weibo.ketama_origin, "160 MD5 points", WEIBO, names=True),
}
