"""Every row of weibo.json, and the names of Weibo's hashes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from hyper_proxy.config.model import Server
from tests.hashing.cases import hash_value, key_of, load, numbered, shard, signed

WEIBO = load("weibo")
DISTRIBUTIONS = {
    "modula": "weibo_modula",
    "absmodula": "weibo_absmodula",
    "range": "weibo_range",
    "range_512": "weibo_range-512",
    "modrange": "weibo_modrange",
    "splitmod": "weibo_splitmod",
    "slotmod": "weibo_slotmod",
    "secmod": "weibo_secmod",
    "ketama": "weibo_ketama",
    "ketama_origin": "weibo_ketama_origin",
}


@pytest.mark.parametrize("group", WEIBO["hash_vectors"], ids=[group["hash"] for group in WEIBO["hash_vectors"]])
def test_hash(hashing: ModuleType, group: dict[str, Any]) -> None:
    for row in group["vectors"]:
        assert signed(hash_value(hashing, f"weibo_{group['hash']}", key_of(row))) == int(row["value"]), row


@pytest.mark.parametrize("row", WEIBO["published"], ids=range(len(WEIBO["published"])))
def test_published(hashing: ModuleType, row: dict[str, Any]) -> None:
    if "value" in row:
        assert hash_value(hashing, f"weibo_{row['hash']}", key_of(row)) == int(row["value"])
        return
    by_number = isinstance(row["hash"], int)
    nodes = numbered(row["shards"])
    placement = hashing.build("" if by_number else f"weibo_{row['hash']}", f"weibo_{row['distribution']}", "", nodes)
    assert (placement.shard_of(row["hash"]) if by_number else shard(placement, key_of(row))) == row["index"]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distribution(hashing: ModuleType, name: str) -> None:
    nodes = [Server(host="h", port=1, name=node) for node in WEIBO["ketama_nodes"]]
    placement = hashing.build("", DISTRIBUTIONS[name], "", nodes)
    for row in WEIBO["distribution_vectors"]:
        assert row["shards"] == len(nodes)
        assert placement.shard_of(row["hash"]) == row[name], row


@pytest.mark.parametrize(
    ("name", "key", "same_as", "part"),
    [
        ("crc32-num-5", b"abcde123x9", "crc32", b"123"),
        ("crc32-id-5", b"abcde123x9", "crc32", b"123"),
        ("crc32-range-id-5", b"abcde123x9", "crc32", b"123"),
        ("crc32-range", b"abc", "crc32", b"abc"),
        ("crc32-num-50", b"abc", "crc32", b""),
        ("crc32-point-2", b"ab1.2.3", "crc32", b"1"),
        ("crc32-underscore", b"ab1.2_3", "crc32", b"ab1.2"),
        ("crc32-pound-1", b"#ab#c", "crc32", b"ab"),
        ("crc32-smartnum", b"12_1234_56789x123456", "crc32", b"56789"),
        ("crc32-smartnum", b"12_1234", "crc32", b"12_1234"),
        ("crc32-smartnum", b"1234", "crc32", b"1234"),
        ("crc32local-smartnum", b"a12345", "crc32local", b"12345"),
        ("crc32local-pound", b"a#b", "crc32local", b"a"),
        ("rawsuffix-pound", b"a#12", "raw", b"12"),
        ("rawsuffix-pound", b"a#12#3", "raw", b""),
        ("rawsuffix-pound", b"a#12x", "raw", b""),
        ("rawcrc32local", b"123_x", "raw", b"123"),
        ("rawcrc32local", b"123", "raw", b"123"),
        ("rawcrc32local", b"123x", "crc32local", b"123x"),
        ("rawcrc32local", b"0", "crc32local", b"0"),
        ("rawcrc32local", b"_x", "raw", b""),
    ],
)
def test_part(hashing: ModuleType, name: str, key: bytes, same_as: str, part: bytes) -> None:
    assert hash_value(hashing, f"weibo_{name}", key) == hash_value(hashing, f"weibo_{same_as}", part)


def test_a_hash_of_minus_2_to_the_31_has_no_absolute_value(hashing: ModuleType) -> None:
    # bkdr of this key is 0x80000000 in 32 bits: found by solving h * 31 + b for the last bytes.
    key = b"polygenelubricants"
    assert signed(hash_value(hashing, "weibo_bkdr", key)) == -(2**31)
    placement = hashing.build("weibo_bkdr", "weibo_absmodula", "", numbered(3))
    assert shard(placement, key) == 2**31 % 3


@pytest.mark.parametrize(
    "name",
    [
        "weibo_crc32-dot",
        "weibo_crc32-num-x",
        "weibo_crc32-num-1-2",
        "weibo_crc32-smartnum-3",
        "weibo_crc32-short-3",
        "weibo_crc32local-num",
        "weibo_rawsuffix",
        "weibo_rawsuffix-dot",
        "weibo_bkdr-num",
    ],
)
def test_an_unknown_option_is_an_error(hashing: ModuleType, name: str) -> None:
    with pytest.raises(hashing.HashingError, match=name):
        hashing.build_hash(name)


def test_negative_hashes_stay_in_range(hashing: ModuleType) -> None:
    for name in DISTRIBUTIONS.values():
        for count in (1, 2, 3, 7, 32):
            placement = hashing.build("weibo_crc64", f"{name}", "", numbered(count))
            for value in (2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2**31, 2**31, 2**32 - 1):
                assert 0 <= placement.shard_of(value) < count, (name, count, value)
