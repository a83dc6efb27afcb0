"""What holds for every placement: range, hash tags, how many keys a new server moves, subclasses in plain Python."""

from __future__ import annotations

from hashlib import sha256
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hyper_proxy.hashing
from hyper_proxy.config.model import Server
from hyper_proxy.hashing import DISTRIBUTIONS, HASHES
from tests.hashing.cases import numbered, shard
from tests.hashing.conftest import FORMS

# Keys that differ in all bytes: several of the hashes spread keys such as user:1, user:2 badly over a ring.
KEYS = [sha256(b"%d" % number).hexdigest()[:20].encode() for number in range(6000)]

# A name of each row that can be built, with its options where it needs some.
HASH_NAMES = [name if row.options[:1] in ("", "[") else f"{name}-pound" for name, row in HASHES.items()]
PLACEMENTS = {
    form: {
        name: package.build("", name, "{}" if name in ("redis_cluster", "codis") else "$$", numbered(7))
        for name in DISTRIBUTIONS
    }
    for form, package in FORMS.items()
}


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_every_distribution_answers_in_range_and_the_same_in_both_forms(key: bytes) -> None:
    for name in DISTRIBUTIONS:
        found = {form: PLACEMENTS[form][name].locate(key, 0, len(key)) for form in PLACEMENTS}
        assert all(0 <= index < 7 for index in found.values()), name
        if name != "random":
            assert found["built"] == found["plain"], name


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=40))
def test_every_hash_looks_at_its_bytes_only_and_is_the_same_in_both_forms(key: bytes, around: bytes) -> None:
    for name in HASH_NAMES:
        built, plain = (package.build_hash(name) for package in FORMS.values())
        value = built.value(key, 0, len(key))
        assert 0 <= value < 2**64, name
        assert plain.value(key, 0, len(key)) == value, name
        assert built.value(around + key + around, len(around), len(around) + len(key)) == value, name


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_empty_key_and_one_server(hashing: ModuleType, name: str) -> None:
    assert 0 <= shard_or_any(hashing.build("", name, "", numbered(5))) < 5
    assert shard_or_any(hashing.build("", name, "", numbered(1))) == 0


def shard_or_any(placement: hyper_proxy.hashing.Placement) -> int:
    """The shard of the empty key; random places it anew each time."""
    return placement.locate(b"", 0, 0)


@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name != "random"])
def test_every_server_gets_keys(hashing: ModuleType, name: str) -> None:
    placement = hashing.build("", name, "", numbered(4))
    assert {shard(placement, key) for key in KEYS[:600]} == {0, 1, 2, 3}


def test_random_draws_all_servers() -> None:
    placement = hyper_proxy.hashing.build("", "random", "", numbered(3))
    assert {placement.locate(b"key", 0, 3) for _ in range(200)} == {0, 1, 2}


@pytest.mark.parametrize(
    "name",
    [
        "ketama",
        "libmemcached_ketama",
        "memcached_proxy_ring",
        "mcrouter_ch3",
        "mcrouter_rendezvous",
        "mcrouter_weighted_rendezvous",
        "jump",
        "weibo_ketama",
    ],
)
@pytest.mark.parametrize("count", [3, 8, 16])
def test_a_new_server_takes_its_share_and_nothing_else_moves(name: str, count: int) -> None:
    before = hyper_proxy.hashing.build("", name, "", numbered(count))
    after = hyper_proxy.hashing.build("", name, "", numbered(count + 1))
    moved = [key for key in KEYS if shard(before, key) != shard(after, key)]
    assert all(shard(after, key) == count for key in moved)
    assert 0 < len(moved) <= 1.2 / (count + 1) * len(KEYS)


@pytest.mark.parametrize(
    ("tag", "key", "hashed"),
    [
        ("", b"{a}b", b"{a}b"),
        ("{}", b"{a}b", b"a"),
        ("{}", b"x{a}b{c}", b"a"),
        ("{}", b"x}{a}b", b"a"),
        ("{}", b"{}b", b"{}b"),
        ("{}", b"{}{a}", b"{}{a}"),
        ("{}", b"{{a}}", b"{a"),
        ("{}", b"{a", b"{a"),
        ("{}", b"a}", b"a}"),
        ("{}", b"", b""),
        ("{}", b"{", b"{"),
        ("$$", b"$a$b$", b"a"),
        ("$$", b"x$$a$", b"x$$a$"),
        ("$$", b"x$a", b"x$a"),
    ],
)
def test_hash_tag(hashing: ModuleType, tag: str, key: bytes, hashed: bytes) -> None:
    tagged = hashing.build("crc32a", "modula", tag, numbered(101))
    plain = hashing.build("crc32a", "modula", "", numbered(101))
    assert tagged.explain(key)["hashed"] == hashed
    assert shard(tagged, key) == shard(plain, hashed)


def test_an_empty_tag_counts_in_codis_only(hashing: ModuleType) -> None:
    assert hashing.build("", "codis", "", numbered(3)).explain(b"a{}b{c}")["hashed"] == b""
    assert hashing.build("", "redis_cluster", "", numbered(3)).explain(b"a{}b{c}")["hashed"] == b"a{}b{c}"


def test_explain_says_what_was_hashed(hashing: ModuleType) -> None:
    placement = hashing.build("fnv1a_64", "ketama", "{}", numbered(3))
    told = placement.explain(b"{user1}:a")
    assert told["hashed"] == b"user1"
    assert told["hash"] == hashing.build_hash("fnv1a_64").value(b"user1", 0, 5)
    assert told["shard"] == placement.locate(b"{user1}:a", 0, 9)
    assert hashing.build("", "random", "", numbered(3)).explain(b"k")["hash"] is None


def test_the_sign_of_bytes_can_be_left_out(hashing: ModuleType) -> None:
    for name in ("fnv1_32", "fnv1a_32", "fnv1_64", "fnv1a_64", "one_at_a_time", "hsieh"):
        signed, unsigned = hashing.build_hash(name), hashing.build_hash(f"{name}-unsigned")
        assert signed.value(b"abc", 0, 3) == unsigned.value(b"abc", 0, 3)
        assert signed.value(b"ab\xff", 0, 3) != unsigned.value(b"ab\xff", 0, 3)


def test_slots_are_dealt_out_as_redis_cli_does(hashing: ModuleType) -> None:
    ranges = hashing.distributions.slots.contiguous
    assert [ranges(16384, 3).count(index) for index in range(3)] == [5461, 5462, 5461]
    assert [ranges(16384, 6).index(index) for index in range(6)] == [0, 2731, 5461, 8192, 10923, 13653]
    assert ranges(1024, 4) == sorted(ranges(1024, 4))
    for count in range(1, 300):
        assert set(ranges(16384, count)) == set(range(count))


def test_a_subclass_in_plain_python_is_called_by_compiled_code(hashing: ModuleType) -> None:
    class Length(hashing.Hash):  # type: ignore[name-defined]
        def value(self, buf: bytes, start: int, end: int) -> int:
            return end - start

    class Backwards(hashing.Placement):  # type: ignore[name-defined]
        def shard_of(self, value: int) -> int:
            return int(self.shards - 1 - value % self.shards)

    placement = Backwards(5, Length(), b"{}")
    assert shard(placement, b"abc") == 1
    assert shard(placement, b"abc{x}") == 3
    assert placement.explain(b"abc")["hash"] == 3


def test_what_a_subclass_raises_reaches_the_caller(hashing: ModuleType) -> None:
    with pytest.raises(NotImplementedError, match="value"):
        hashing.Hash().value(b"", 0, 0)
    with pytest.raises(NotImplementedError, match="value"):
        hashing.build("", "ketama", "", numbered(3)).__class__(2, hashing.Hash(), b"", [(1, 0)]).locate(b"k", 0, 1)


def test_the_ring_is_searched_as_its_definition_says(hashing: ModuleType) -> None:
    for bits, points in [
        (32, [0, 1, 5, 5, 9, 2**31, 2**32 - 1]),
        (32, [7]),
        (32, [0]),
        (64, [3, 2**63, 2**64 - 1]),
        (32, list(range(100, 1000, 3))),
        (64, list(range(100, 1000, 3))),
    ]:
        owned = [(point, index) for index, point in enumerate(points)]
        ring = hashing.lookup.Ring(len(points), hashing.Hash(), b"", owned, bits)
        for point in [*points, *(point + 1 for point in points), *(point - 1 for point in points), 0, 2**64 - 1]:
            value = point % 2**bits
            expected = next((i for i, point in enumerate(points) if point >= value), 0)
            assert ring.shard_of(point % 2**64) == expected, (points, point)


def test_names_of_servers(hashing: ModuleType) -> None:
    full_name = hashing.names.full_name
    for server, ring, full in [
        (Server(host="10.0.0.1", port=6379), "10.0.0.1:6379", "10.0.0.1:6379"),
        (Server(host="10.0.0.1", port=11211), "10.0.0.1", "10.0.0.1:11211"),
        (Server(host="10.0.0.1", port=11211, name="a"), "a", "a"),
        (Server(path="/run/a.sock"), "/run/a.sock:", "/run/a.sock"),
        (Server(path="/run/a.sock", name="a"), "a", "a"),
        (Server(host="::1", port=80), "::1:80", "[::1]:80"),
        (Server(file="/var/a.db"), "/var/a.db", "/var/a.db"),
    ]:
        assert (hashing.ring_name(server), full_name(server)) == (ring, full)
