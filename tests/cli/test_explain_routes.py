"""What explain says of routes and levels."""

from __future__ import annotations

import pytest

from hyper_proxy.config.load import load_text
from hyper_proxy.explain import as_text, explain

ROUTED = """\
[[instance]]
name = "routed"
protocol = "redis"
listen = ["127.0.0.1:6380"]
  [[instance.level]]
  storage = "redis"
  servers = ["10.0.0.1:6379 a"]
  route = { class = { read = "near", write = "main" } }
    [[instance.level.pool]]
    name = "near"
    servers = ["10.0.0.2:6379 b"]
"""


def test_a_request_on_a_route_says_who_gets_what() -> None:
    text = as_text(explain(load_text(ROUTED, "x.toml"), "routed", [b"SET", b"k", b"1"]))
    assert text.splitlines()[-1].endswith(", class: read at b, write at a: SET k 1")


@pytest.mark.parametrize(
    "request_", ["GET k", "SET k 1", "WATCH k", "XREAD BLOCK 0 STREAMS k 0", "XREAD STREAMS k 0"]
)
def test_the_server_of_a_route_by_class_is_that_of_the_class(request_: str) -> None:
    found = explain(load_text(ROUTED, "x.toml"), "routed", request_.encode().split())
    label = "b" if request_ in ("GET k", "XREAD STREAMS k 0") else "a"
    assert [sent.server.label for sent in found.outcome.sent if sent.server] == [label]
    assert [place.server.label for place in found.keys[0].places if place.server] == [label]


def test_keys_are_counted_and_walked_where_all_of_them_are() -> None:
    config = load_text(ROUTED, "x.toml")
    counted = explain(config, "routed", [b"DBSIZE"]).outcome
    assert counted.way.startswith("every server of pool main gets it")
    assert [sent.server.label for sent in counted.sent if sent.server] == ["a"]
    walked = explain(config, "routed", [b"SCAN", b"0"]).outcome
    assert [sent.server.label for sent in walked.sent if sent.server] == ["a"]


def test_each_of_several_levels_is_named() -> None:
    below = '  [[instance.level]]\n  storage = "sqlite"\n  servers = ["/var/lib/x.db"]\n'
    text = as_text(explain(load_text(ROUTED + below, "x.toml"), "routed", [b"GET", b"k"]))
    first, second = (line for line in text.splitlines() if line.startswith("key "))
    assert "), level 1 (redis): " in first and "), level 2 (sqlite): " in second


def test_what_takes_one_level_of_memcached_is_refused_above_another() -> None:
    level = '  [[instance.level]]\n  storage = "memcache"\n  servers = ["10.0.0.{0}:11211 m{0}"]\n'
    head = '[[instance]]\nname = "page"\nprotocol = "memcache"\nlisten = ["127.0.0.1:11311"]\n'
    config = load_text(f'{head}allow = ["cache_memlimit"]\n{level.format(1)}{level.format(2)}', "x.toml")
    resized = explain(config, "page", [b"cache_memlimit", b"64"]).outcome
    assert resized.error.endswith("is not served: it needs one level of memcached servers as the storage")
    assert not explain(config, "page", [b"stats"]).outcome.sent


def test_a_file_below_servers_does_not_say_that_none_is_asked() -> None:
    file = '  [[instance.level]]\n  storage = "sqlite"\n  servers = ["/var/lib/x.db"]\n'
    server = '  [[instance.level]]\n  storage = "redis"\n  servers = ["10.0.0.1:6379"]\n'
    head = ROUTED.partition("  [[")[0]
    levels = (file, server + file)
    alone, below = (explain(load_text(head + one, "x.toml"), "routed", [b"GET", b"k"]) for one in levels)
    assert "no server is asked: the request becomes operations on the sqlite file" in alone.outcome.way
    assert below.outcome.way.endswith("at the last level the request becomes operations on the sqlite file")


def test_over_levels_a_read_and_a_write_go_their_own_ways() -> None:
    server = '  [[instance.level]]\n  storage = "redis"\n  servers = ["10.0.0.{0}:6379"]\n'
    config = load_text(ROUTED.partition("  [[")[0] + server.format(1) + server.format(2), "x.toml")
    read, write = (explain(config, "routed", words).outcome.way for words in ([b"GET", b"k"], [b"SET", b"k", b"1"]))
    assert read.startswith("the 2 levels are asked from the first on")
    assert "what it lacks is asked below" in read and "a write" not in read
    assert write.startswith("it is done below, where the request becomes commands of redis")
    assert "level 1 (redis): a write takes its copy away" in write and "asked" not in write


def test_a_server_of_a_pool_is_named_by_its_number_there() -> None:
    route = 'route = { prefix = { "session:" = "near", "" = "main" } }'
    text = ROUTED.replace('route = { class = { read = "near", write = "main" } }', route)
    config = load_text(text.replace('"10.0.0.1:6379 a"', '"10.0.0.1:6379 a", "10.0.0.3:6379 c"'), "x.toml")
    said = {}
    for key in (b"session:1", *[b"%d" % (number * 7919) for number in range(1, 9)]):
        found = explain(config, "routed", [b"GET", key])
        (place,) = found.keys[0].places
        assert place.server is not None
        said[place.server.label] = place.pool
        assert f"ketama gives {place.pool}, shard {place.shard}, " in as_text(found)
    assert said == {"b": "number 0 of pool near", "a": "number 0 of pool main", "c": "number 1 of pool main"}
