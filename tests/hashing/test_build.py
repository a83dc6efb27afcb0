"""Choices: unknown names, options, servers; known traps; the tables and the page that shows them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from hyper_proxy.config.model import Server
from hyper_proxy.hashing import DISTRIBUTIONS, HASHES, HashingError, build, warnings
from hyper_proxy.hashing.describe import updated
from tests.hashing.cases import numbered

PAGE = Path(__file__).parents[2] / "docs" / "hashing.md"


@pytest.mark.parametrize(
    ("hash", "distribution", "tag", "message"),
    [
        ("fnv1a64", "ketama", "", "unknown hash 'fnv1a64'; did you mean 'fnv1a_64'?"),
        ("MD5", "ketama", "", "unknown hash 'MD5'; did you mean 'md5'?"),
        ("md5-unsigned", "ketama", "", "hash 'md5-unsigned': 'md5' takes no options"),
        ("fnv1a_64-signed", "ketama", "", "hash 'fnv1a_64-signed': the only option of this hash is '-unsigned'"),
        ("md5", "ketma", "", "unknown distribution 'ketma'; did you mean 'ketama'?"),
        ("md5", "ketama-5", "", "distribution 'ketama-5': 'ketama' takes no options"),
        ("md5", "ketama", "{", "hash_tag '{': must be empty or two ASCII characters"),
        ("md5", "ketama", "{}}", "hash_tag '{}}': must be empty or two ASCII characters"),
        ("md5", "ketama", "é}", "must be empty or two ASCII characters"),
        ("", "redis_cluster", "$$", "'redis_cluster' always uses the hash tag '{}', not '$$'"),
        ("", "codis", "<>", "'codis' always uses the hash tag '{}', not '<>'"),
        ("", "envoy_maglev-10", "", "'envoy_maglev-10': 10 is not a prime number"),
        ("", "envoy_maglev-x", "", "'envoy_maglev-x': what follows the name must be one number of at least 2"),
        ("", "envoy_ring_hash-0", "", "must be one number of at least 1"),
        ("", "memcached_proxy_ketama-3", "", "must be one number of at least 4"),
        ("", "weibo_range-4-4", "", "must be one number of at least 1"),
        ("", "weibo_splitmod-2", "", "'weibo_splitmod-2': 2 slots are not enough for 3 servers"),
        ("", "mcrouter_ch3-x", "", "'mcrouter_ch3-x': cannot read the options after 'mcrouter_ch3'"),
        ("", "mcrouter_ch3-whole=3", "", "cannot read the options"),
        ("", "mcrouter_ch3-salt=", "", "cannot read the options"),
        ("", "mcrouter_weighted_ch3-whole=0", "", "cannot read the options"),
    ],
)
def test_a_wrong_choice_is_named(hashing: ModuleType, hash: str, distribution: str, tag: str, message: str) -> None:
    with pytest.raises(hashing.HashingError) as caught:
        hashing.build(hash, distribution, tag, numbered(3))
    assert message in str(caught.value)


def test_servers_are_checked() -> None:
    with pytest.raises(HashingError, match="at least one server"):
        build("", "ketama", "", [])
    with pytest.raises(HashingError, match="server 'a': its weight 0 must be at least 1"):
        build("", "ketama", "", [Server(host="h", port=1, name="a", weight=0)])
    with pytest.raises(HashingError, match="a weight is above 10, which"):
        build("", "mcrouter_weighted_ch3-whole=10", "", [Server(host="h", port=1, weight=11)])
    with pytest.raises(HashingError, match="'codis' has 1024 slots, not enough for 1025 servers"):
        build("", "codis", "", numbered(1025))


def test_an_ignored_hash_is_not_even_read() -> None:
    assert build("", "redis_cluster", "{}", numbered(3)).shards == 3


def test_no_hash_means_the_default_of_the_distribution() -> None:
    by_default = build("", "libmemcached_modula", "", numbered(3)).explain(b"user:1001")
    assert by_default == build("one_at_a_time", "libmemcached_modula", "", numbered(3)).explain(b"user:1001")


BARE = [Server(host="10.0.0.1", port=6379), Server(host="10.0.0.2", port=6379, name="b")]
SAME = [Server(host="10.0.0.1", port=1, name="a"), Server(host="10.0.0.2", port=1, name="a")]
HEAVY = [Server(host="10.0.0.1", port=1, name="a", weight=2), Server(host="10.0.0.2", port=1, name="b")]
GIANT = Server(host="10.0.0.1", port=1, name="c", weight=500)


@pytest.mark.parametrize(
    ("hash", "distribution", "servers", "told"),
    [
        ("fnv1a_64", "ketama", numbered(3), ()),
        ("", "ketama", numbered(3), ()),
        ("crc32", "ketama", numbered(3), ("hash 'crc32' has only 15 bits",)),
        ("weibo_crc32-short", "weibo_ketama", numbered(4), ("hash 'weibo_crc32-short' has only 15 bits",)),
        ("weibo_crc32", "weibo_ketama", numbered(4), ()),
        ("crc32", "libmemcached_ketama", numbered(3), ()),  # the points have 15 bits as well
        ("crc32", "libmemcached_ketama_weighted", numbered(3), ()),  # the hash is ignored
        ("crc32", "modula", numbered(3), ()),
        ("", "ketama", BARE, ("10.0.0.1:6379 has no alias",)),
        ("", "ketama", BARE, ('unless it equals the old name: "10.0.0.1:6379:1 10.0.0.1:6379"',)),
        ("", "ketama", BARE[:1], ()),
        ("", "envoy_maglev", BARE, ("10.0.0.1:6379 has no alias",)),
        ("", "modula", BARE, ()),
        ("", "ketama", SAME, ("servers a and a have 160 equal ring points",)),
        ("", "weibo_range", numbered(3), ("made for a power of two of servers, not 3",)),
        ("", "weibo_modrange-512", numbered(6), ("made for a power of two of servers, not 6",)),
        ("", "weibo_range", numbered(4), ()),
        ("", "weibo_range-512-nocheck", numbered(3), ()),
        ("", "weibo_slotmod", numbered(3), ()),
        ("", "redis_cluster", HEAVY, ("does not look at the weights",)),
        ("", "ketama", HEAVY, ()),
        ("", "ketama", [*numbered(2), GIANT], ("server node1 is too small", "server node2 is too small")),
    ],
)
def test_traps(hash: str, distribution: str, servers: list[Server], told: tuple[str, ...]) -> None:
    found = warnings(hash, distribution, servers)
    assert len(found) == len(told), found
    for sentence, part in zip(found, told, strict=True):
        assert part in sentence


def test_crc32_with_ketama_is_as_bad_as_the_warning_says() -> None:
    placement = build("crc32", "ketama", "", numbered(3))
    assert len({placement.locate(b"user:%d" % i, 0, len(b"user:%d" % i)) for i in range(2000)}) == 1


def test_every_row_has_a_help_of_one_line() -> None:
    for name, help in [*((n, h.help) for n, h in HASHES.items()), *((n, d.help) for n, d in DISTRIBUTIONS.items())]:
        assert help and "\n" not in help and len(help) < 110, name
        assert "-" not in name, name  # what follows a "-" is an option


def test_a_row_is_all_that_a_new_hash_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from hyper_proxy.hashing import Hash, HashRow

    class Last(Hash):
        def value(self, buf: bytes, start: int, end: int) -> int:
            return buf[end - 1] if end > start else 0

    monkeypatch.setitem(HASHES, "last", HashRow(lambda options: Last(), "the last byte"))
    assert build("last", "modula", "", numbered(10)).locate(b"key7", 0, 4) == ord("7") % 10


def test_the_page_shows_the_tables_of_the_code() -> None:
    page = PAGE.read_text()
    assert page == updated(page), "run: python -m hyper_proxy.hashing.describe docs/hashing.md"


def test_the_example_of_the_page_works(tmp_path: Path) -> None:
    source = PAGE.read_text().partition("## Adding a hash")[2].partition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {}
    exec(compile(source, "djb2.py", "exec"), names)
    kind = names["Djb2"]
    assert isinstance(kind, type)
    # cdb's own test: the hash of "one" is (((5381 * 33 ^ o) * 33 ^ n) * 33 ^ e).
    assert kind().value(b"xone", 1, 4) == ((5381 * 33 ^ 111) * 33 ^ 110) * 33 ^ 101
