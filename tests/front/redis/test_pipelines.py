"""Pipelines: of any depth, of anything, in any packets; the answers are those of one redis-server, byte for byte."""

from __future__ import annotations

import random
import re
import socket
from collections.abc import Callable

import pytest
import redis

from tests.front.redis.conftest import Proxy, converse, encode
from tests.kit.servers import Running
from tests.protocol.raw import Raw


def one_of(rng: random.Random, number: int, key: str, others: list[str]) -> bytes:
    """One of the requests whose answers do not depend on how many servers there are, and whose replies all differ."""
    return rng.choice(
        [
            encode("SET", key, rng.randbytes(rng.randrange(0, 200))),
            encode("GET", key),
            encode("MGET", *others),
            encode("MSET", *(word for one in others for word in (one, f"{number}"))),
            encode("DEL", *others),
            encode("EXISTS", *others),
            encode("APPEND", key, "x"),
            encode("STRLEN", key),
            encode("ECHO", f"{number}"),
            encode("PING"),
            encode("LPUSH", key, "a", "b"),  # WRONGTYPE, for the most part
            encode("GET"),
            encode("GET", key, "too much"),
            encode("MSET", key),
            encode("NOSUCHCOMMAND", key, f"{number}"),
            encode("CLIENT", "NOSUCH"),
            b"GET %b\r\n" % key.encode(),
            b"MGET %b\r\n" % " ".join(others).encode(),
            b"*0\r\n" + encode("PING", "after nothing"),
            b"\r\n" + encode("PING", "after an empty line"),
            encode("MULTI") + encode("SET", key, "t") + encode("GET", key) + encode("EXEC"),
            encode("MULTI") + encode("NOSUCHCOMMAND") + encode("EXEC"),
            encode("EXEC"),
            encode("SELECT", "0"),
            encode("SELECT", "nonsense"),
            encode("CLIENT", "REPLY", "SKIP") + encode("GET", key),
        ]
    )


def mixed(count: int, seed: int) -> list[bytes]:
    """So many of them."""
    rng = random.Random(seed)
    keys = [f"key:{number}" for number in range(200)]
    return [one_of(rng, number, rng.choice(keys), rng.sample(keys, rng.randrange(1, 12))) for number in range(count)]


def test_ten_thousand_mixed_requests_in_one_send(proxy: Proxy, oracle: Running) -> None:
    data = b"".join(mixed(10_000, 1))
    assert converse(proxy.port, data, len(data) + 100) == converse(oracle.port, data)


@pytest.mark.parametrize("step", [1, 7, 1460, 65536])
def test_packets_of_any_size(both_proxies: Proxy, oracle: Running, step: int) -> None:
    data = b"".join(mixed(150 if step == 1 else 1000, step))
    assert converse(both_proxies.port, data, step) == converse(oracle.port, data)


@pytest.mark.parametrize("size", [*range(16384 - 64, 16384 + 65, 32), 65536, 1 << 20, 20 << 20])
def test_values_of_any_size(proxy: Proxy, size: int) -> None:
    value = random.Random(size).randbytes(size)
    client = proxy.client()
    keys = [f"{size}:{number}" for number in range(3)]
    for key in keys:
        assert client.set(key, value)
    assert client.get(keys[0]) == value
    assert client.mget(keys) == [value] * 3
    assert client.strlen(keys[1]) == size


def test_thousands_of_keys_at_once(both_proxies: Proxy) -> None:
    client = both_proxies.client()
    values = {f"key:{number}".encode(): b"value of %d" % number for number in range(20_000)}
    assert client.mset(values)
    assert client.mget(list(values)) == list(values.values())
    assert client.exists(*values) == len(values)
    assert client.delete(*values) == len(values)


def test_requests_of_many_big_words_take_time_by_their_size(proxy: Proxy) -> None:
    """Half a gigabyte would be copied if each look at the unfinished request copied what has come so far."""
    client = proxy.client()
    values = {f"key:{number}": b"x" * 65536 for number in range(600)}
    assert client.mset(values)
    assert client.mget(list(values)) == list(values.values())


def last_words(port: int, data: bytes) -> bytes:
    """All that comes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock, sock.makefile("rb") as stream:
        sock.sendall(data)
        return stream.read()


def test_quit_in_a_pipeline_answers_what_came_before_and_nothing_after(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as sock, sock.makefile("rb") as stream:
        sock.sendall(encode("SET", "a", "1") + encode("GET", "a") + encode("QUIT") + encode("SET", "a", "2"))
        assert stream.read() == b"+OK\r\n$1\r\n1\r\n+OK\r\n"
    assert proxy.client().get("a") == b"1"


BAD = [
    b"*1\r\n$-1\r\n", b"*x\r\n", b"*-x\r\n", b"*1\r\nPING\r\n", b"*1\r\n\r\n\r\n", b"*1\r\n$03\r\nGET\r\n", b"*03\r\n",
    b"*1\r\n$x\r\n", b'set "a\r\n', b"set 'a'b\r\n", b"*2147483648\r\n", b"*1\r\n$536870913\r\n", b"x" * 70_000,
    b"*1\r\n:1\r\n",
]  # fmt: skip

LIMIT = re.compile(rb": more than limits\.\w+ \(\d+\)")  # which redis does not name


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: repr(bad[:30]))
def test_malformed_bytes_get_redis_words_and_the_connection_is_closed(
    proxy: Proxy, oracle: Running, bad: bytes
) -> None:
    answers = [last_words(port, encode("PING") + bad) for port in (proxy.port, oracle.port)]
    assert LIMIT.sub(b"", answers[0]) == answers[1]
    assert answers[0].startswith(b"+PONG\r\n-ERR Protocol error: ")


def test_malformed_bytes_of_one_client_do_not_disturb_another(proxy: Proxy) -> None:
    client = proxy.client()
    client.set("a", "1")
    for bad in (
        b"*3\r\n$03\r\nSET\r\n$1\r\na\r\n$1\r\n2\r\n",
        b"*1\r\n$4\r\nPINGxx*1\r\n",
        b"\0\0\0\n",
        b"*-1\r\n*0\r\n",
    ):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as sock:
            sock.sendall(bad)
            assert client.get("a") == b"1"


def test_empty_requests_have_no_answer(proxy: Proxy, oracle: Running) -> None:
    data = b"\r\n\n*0\r\n*-1\r\n*-5\r\n \r\n" + encode("PING") + b"\r\n"
    assert converse(proxy.port, data) == converse(oracle.port, data) == b"+PONG\r\n"


def test_the_limits_of_an_instance_are_kept(proxy: Proxy) -> None:
    for bad, words in {
        encode("SET", "k", "x" * 1001): b"invalid bulk length: more than limits.max_value_bytes (1000)",
        encode("MGET", *range(20)): b"invalid multibulk length: more than limits.max_arguments (20)",
        b"PING " * 20_000: b"too big inline request: more than limits.max_line_bytes (65536)",
    }.items():
        connection = proxy.raw("small")
        connection.sock.sendall(bad)
        assert connection.file.read() == b"-ERR Protocol error: " + words + b"\r\n"
    assert proxy.raw("small").redis(b"SET", b"k", b"x" * 1000) == b"+OK\r\n"
    assert proxy.raw("small").redis(b"SELECT", b"2") == b"-ERR DB index is out of range\r\n"


def test_what_is_refused_names_the_command_of_the_proxy_that_does_it(proxy: Proxy) -> None:
    connection = proxy.raw()
    assert b"`hyper-proxy ctl show clients`, `ctl disconnect ADDRESS`" in connection.redis(b"CLIENT", b"LIST")
    assert b"`hyper-proxy ctl show slowlog`" in connection.redis(b"SLOWLOG", b"GET")


def test_words_of_a_pipeline_that_look_like_protocol(proxy: Proxy) -> None:
    odd = [b"", b"\r\n", b"*1\r\n$4\r\nPING\r\n", b"\0", b"$-1\r\n", bytes(range(256)), b" ", b"-ERR\r\n"]
    connection: Raw = proxy.raw()
    for key in odd:
        assert connection.redis(b"SET", key, key) == b"+OK\r\n"
    expected = b"*%d\r\n" % len(odd) + b"".join(b"$%d\r\n%b\r\n" % (len(key), key) for key in odd)
    assert connection.redis(b"MGET", *odd) == expected


def test_what_waits_in_a_pipeline_goes_where_a_reload_has_said_meanwhile(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running]
) -> None:
    """Be it behind answers that the client is slow to read, or behind a request that waits itself."""
    first, second, new = (node.address for node in redis_nodes)
    proxy = start_proxy([first, second])
    size, times = 4_000_000, 12  # more than the system keeps for one who does not read
    (big, jobs), (slow, *silent) = proxy.keys_on(1, 2), proxy.keys_on(0, 9)
    proxy.client().set(big, b"x" * size)
    reader, waiter = proxy.raw(), proxy.raw()
    reader.sock.sendall(encode("GET", big) * times + encode("INCR", slow))
    for _ in range(4):  # then it has been sent what was one batch, and the next ones
        assert len(reader._resp()) > size
    writes = b"".join(encode("INCR", key) for key in silent)
    waiter.sock.sendall(encode("CLIENT", "REPLY", "OFF") + encode("BLPOP", jobs, 0) + writes)
    proxy.fleet.write(proxy.config.replace(first, new))
    assert proxy.fleet.reload().accepted
    proxy.client().incrby(slow, 10)
    for _ in range(times - 4):
        assert len(reader._resp()) > size
    assert reader._resp() == b":11\r\n"
    proxy.client().rpush(jobs, "job")
    waiter.sock.sendall(encode("CLIENT", "REPLY", "ON"))
    assert waiter._resp() == b"+OK\r\n"
    old, now = (redis.Redis(port=node.port) for node in (redis_nodes[0], redis_nodes[2]))
    assert [now.get(key) for key in silent] == [b"1"] * len(silent)
    assert old.keys() == []
