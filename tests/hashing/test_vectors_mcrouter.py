"""Every row of mcrouter.json, and SpookyHash, of which mcrouter's weights are drawn."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from hyper_proxy.config.model import Server
from tests.hashing.cases import key_of, load, numbered, servers, shard

MCROUTER = load("mcrouter")


def ch3(hashing: ModuleType, buckets: int) -> Any:
    """ch3 over any number of servers, without a list of them."""
    return hashing.distributions.furc.Furc(buckets, hashing.functions.murmur.Murmur64A(4193360111), b"")


def crc32(hashing: ModuleType, buckets: int) -> Any:
    """crc32 over any number of servers."""
    return hashing.lookup.Modulo(buckets, hashing.functions.crc.Crc32(0, 0x7FFFFFFF))


def hundredths(weights: list[float]) -> list[int]:
    """Weights such as 0.25 in hundredths."""
    return [round(weight * 100) for weight in weights]


BY_NUMBER = [("ch3", ch3), ("ch3_published", ch3), ("crc32", crc32), ("crc32_published", crc32)]


@pytest.mark.parametrize(("kind", "make"), BY_NUMBER)
def test_by_number(hashing: ModuleType, kind: str, make: Any) -> None:
    for row in MCROUTER[kind]:
        assert shard(make(hashing, row["buckets"]), key_of(row)) == row["index"], row
        if row["buckets"] <= 100:
            listed = hashing.build("", f"mcrouter_{make.__name__}", "", numbered(row["buckets"]))
            assert shard(listed, key_of(row)) == row["index"], row


def test_weighted_ch3(hashing: ModuleType) -> None:
    for row in MCROUTER["weighted_ch3"]:
        nodes = servers(["a:1", "b:1", "c:1"], hundredths(row["weights"]))
        for distribution in ("mcrouter_weighted_ch3", "mcrouter_weighted_ch3-whole=100"):
            assert shard(hashing.build("", distribution, "", nodes), key_of(row)) == row["index"], row


def test_weighted_ch3_counts(hashing: ModuleType) -> None:
    published = MCROUTER["weighted_ch3_published"]
    nodes = servers(["a:1", "b:1", "c:1"], hundredths(published["weights"]))
    placement = hashing.build("", "mcrouter_weighted_ch3", "", nodes)
    found = [shard(placement, str(number).encode()) for number in range(1000)]
    assert [found.count(index) for index in range(3)] == published["counts"]


@pytest.mark.parametrize("kind", ["rendezvous", "weighted_rendezvous"])
def test_rendezvous(hashing: ModuleType, kind: str) -> None:
    for row in MCROUTER[kind]:
        nodes = servers(row["endpoints"], hundredths(row["weights"]) if "weights" in row else None)
        assert shard(hashing.build("", f"mcrouter_{kind}", "", nodes), key_of(row)) == row["index"], row


def test_rendezvous_published(hashing: ModuleType) -> None:
    for row in MCROUTER["rendezvous_published"]:
        assert row["endpoints"] == "xxx.<i>.yy for i in 0..342"
        nodes = [Server(host="h", port=1, name=f"xxx.{i}.yy") for i in range(343)]
        assert shard(hashing.build("", "mcrouter_rendezvous", "", nodes), key_of(row)) == row["index"], row


@pytest.mark.parametrize("name", ["ch3", "crc32", "rendezvous", "weighted_ch3", "weighted_rendezvous"])
def test_a_salt_is_appended_to_the_key(hashing: ModuleType, name: str) -> None:
    nodes = servers(["a:1", "b:1", "c:1", "d:1"], [5, 4, 3, 2])
    plain = hashing.build("", f"mcrouter_{name}", "", nodes)
    salted = hashing.build("", f"mcrouter_{name}-salt=x-1", "", nodes)
    for number in range(50):
        assert shard(salted, b"key%d" % number) == shard(plain, b"key%dx-1" % number)


# SpookyHashV2::Hash128 of Bob Jenkins' C++, low half cut to 32 bits, of the first n of the bytes 0, 7, 14 ... mod 256.
SPOOKY = {
    0: 1865093797,
    1: 1242130795,
    7: 839693611,
    8: 3231461058,
    15: 3554245474,
    16: 185402377,
    31: 1777799930,
    32: 3285043038,
    63: 326839753,
    100: 2953517973,
    191: 1159432143,
    192: 3612406100,
    200: 1833909482,
    287: 1109891502,
    288: 2156685915,
    300: 3374497119,
}


@pytest.mark.parametrize("length", SPOOKY)
def test_spooky(hashing: ModuleType, length: int) -> None:
    data = bytes(i * 7 & 255 for i in range(length))
    function = hashing.functions.spooky.Spooky(0xFACE2014)
    assert function.value(data, 0, length) == SPOOKY[length]
    assert function.value(b"ab" + data + b"c", 2, 2 + length) == SPOOKY[length]


@pytest.mark.parametrize(
    ("key", "routing_key"),
    [
        (b"/region/cluster/user:1", b"user:1"),
        (b"/region/cluster/", b""),
        (b"user:1|#|profile", b"user:1"),
        (b"/a/b/user:1|#|x|#|y", b"user:1"),
        (b"/a/b", b"/a/b"),
        (b"a/b/c/user:1", b"a/b/c/user:1"),
        (b"user:1|#", b"user:1|#"),
        (b"|#|", b""),
    ],
)
def test_routing_key(hashing: ModuleType, key: bytes, routing_key: bytes) -> None:
    placement = hashing.build("", "mcrouter_ch3", "", numbered(97))
    assert placement.explain(key)["hashed"] == routing_key
    assert shard(placement, key) == shard(placement, routing_key)


def test_a_hash_tag_is_looked_for_in_the_routing_key(hashing: ModuleType) -> None:
    placement = hashing.build("", "mcrouter_ch3", "{}", numbered(97))
    assert placement.explain(b"/a{1}/b/x{2}y|#|{3}")["hashed"] == b"2"
    assert shard(placement, b"/a{1}/b/x{2}y|#|{3}") == shard(placement, b"2")
