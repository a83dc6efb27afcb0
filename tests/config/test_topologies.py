"""What may be said of servers that are found out, and what is refused with a word of what to do."""

from __future__ import annotations

import pytest

from tests.config.texts import findings

FRONT = """\
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:6380"]

[[instance.level]]
storage = "redis"
servers = ["10.0.0.1:6379", "10.0.0.2:6379"]
topology = "{topology}"
{lines}
"""
POOL = '[[instance.level.pool]]\nname = "more"\nservers = ["10.0.0.3:6379"]'
SQLITE = '[[instance.level]]\nstorage = "sqlite"\nservers = ["a.db"]\n'
NAMES = 'masters = ["a", "b"]'


def text(topology: str, *lines: str, protocol: str = "redis") -> str:
    """A level of this topology with these lines."""
    return FRONT.format(topology=topology, lines="\n".join(lines), protocol=protocol)


@pytest.mark.parametrize(
    "said",
    [
        text("servers"),
        text("cluster"),
        text("cluster", protocol="memcache"),
        text("cluster") + SQLITE,
        text("cluster", 'reads = "prefer_replica"', "max_lag_s = 2"),
        text("sentinel", NAMES),
        text("sentinel", NAMES, 'distribution = "modula"', 'reads = "replica"', "db = 2"),
    ],
)
def test_what_can_be_served_is_accepted(said: str) -> None:
    assert [str(one) for one in findings(said) if one.level == "error"] == []


@pytest.mark.parametrize(
    ("said", "code", "says"),
    [
        (text("servers", NAMES), "HP224", "it takes topology"),
        (text("servers", 'reads = "replica"'), "HP224", "it takes topology"),
        (text("sentinel"), "HP224", "masters is missing"),
        (text("cluster", 'sentinel_password = "x"'), "HP224", "there are no sentinels"),
        (text("servers", 'sentinel_username = "x"'), "HP224", "there are no sentinels"),
        (text("sentinel", NAMES, 'sentinel_username = "x"'), "HP224", "sentinel_password is missing"),
        (text("sentinel", 'masters = ["a", "a"]'), "HP224", "'a' is listed twice"),
        (text("sentinel", 'masters = ["a b"]'), "HP106", "no name"),
        (text("cluster", NAMES), "HP224", "itself knows its masters"),
        (text("cluster", "db = 1"), "HP224", "database 0 only"),
        (text("cluster", 'distribution = "modula"'), "HP224", "take distribution out"),
        (text("cluster", 'hash_tag = "{}"'), "HP224", "take hash_tag out"),
        (text("cluster", 'route = { failover = ["main", "more"] }', POOL), "HP224", "no pools and no route"),
        (text("cluster", 'reads = "replica"') + SQLITE, "HP224", "of several levels masters are read"),
        (text("cluster", "max_lag_s = 1"), "HP223", "reads go to masters"),
        (text("ring"), "HP106", "none of servers, cluster, sentinel"),
    ],
)
def test_what_can_not_be_served_is_refused_with_its_reason(said: str, code: str, says: str) -> None:
    found = [one for one in findings(said) if one.level == "error"]
    assert code in {one.code for one in found}
    assert any(says in one.message for one in found if one.code == code), found
