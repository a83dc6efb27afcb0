"""MULTI, EXEC, DISCARD, WATCH over three nodes: what one server would say, as long as the keys are on one node."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from tests.front.redis.conftest import Proxy, converse, encode
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.servers import Running
from tests.kit.wait import wait_for
from tests.protocol.raw import Raw

CROSS = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n"


def test_a_transaction_on_one_node_is_atomic_and_ordered(proxy: Proxy) -> None:
    a, b = proxy.keys_on(1, 2)
    client = proxy.client()
    pipe = client.pipeline(transaction=True)
    for words in (("SET", a, 1), ("INCR", a), ("GET", a), ("SET", b, "x"), ("MGET", a, b), ("DEL", a, b)):
        pipe.execute_command(*words)
    assert pipe.execute() == [True, 2, b"2", True, [b"2", b"x"], 2]


def test_conflicts_are_noticed(proxy: Proxy) -> None:
    (key,) = proxy.keys_on(0, 1)
    client, rival = proxy.client(), proxy.client()
    with client.pipeline() as pipe:
        pipe.watch(key)
        assert pipe.get(key) is None
        rival.set(key, "rival")
        pipe.multi()
        pipe.set(key, "mine")
        with pytest.raises(redis.WatchError):
            pipe.execute()
    assert client.get(key) == b"rival"
    with client.pipeline() as pipe:
        pipe.watch(key)
        pipe.multi()
        pipe.set(key, "mine")
        assert pipe.execute() == [True]
    assert client.get(key) == b"mine"


def test_a_conflict_with_ones_own_write_is_noticed_as_by_redis(proxy: Proxy, oracle: Running) -> None:
    key = b"{t}k"
    data = encode("WATCH", key) + encode("SET", key, "1") + encode("MULTI") + encode("GET", key) + encode("EXEC")
    assert converse(proxy.port, data) == converse(oracle.port, data)


def test_keys_of_two_nodes_are_refused_and_spoil_the_transaction(proxy: Proxy) -> None:
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    connection = proxy.raw()
    assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert connection.redis(b"SET", a.encode(), b"1") == b"+QUEUED\r\n"
    assert connection.redis(b"SET", b.encode(), b"1") == CROSS
    assert connection.redis(b"EXEC") == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    assert connection.redis(b"EXISTS", a.encode(), b.encode()) == b":0\r\n"
    assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert connection.redis(b"MSET", a.encode(), b"1", b.encode(), b"2") == CROSS
    assert connection.redis(b"DISCARD") == b"+OK\r\n"
    assert connection.redis(b"WATCH", a.encode(), b.encode()) == CROSS
    assert connection.redis(b"GET", a.encode()) == b"$-1\r\n"


def test_watched_and_queued_keys_must_be_on_one_node(proxy: Proxy) -> None:
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    connection = proxy.raw()
    assert connection.redis(b"WATCH", a.encode()) == b"+OK\r\n"
    assert connection.redis(b"WATCH", b.encode()) == CROSS
    assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert connection.redis(b"SET", b.encode(), b"1") == CROSS
    assert connection.redis(b"EXEC").startswith(b"-EXECABORT")


def test_a_watch_that_failed_pins_nothing(proxy: Proxy, redis_nodes: list[Running]) -> None:
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    connection = proxy.raw()
    redis_nodes[0].freeze()
    try:
        assert connection.redis(b"WATCH", a.encode()).startswith(b"-ERR instance 'user' node 'a")
    finally:
        redis_nodes[0].thaw()
    assert connection.redis(b"WATCH", b.encode()) == b"+OK\r\n"
    assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert connection.redis(b"SET", b.encode(), b"1") == b"+QUEUED\r\n"
    assert connection.redis(b"EXEC") == b"*1\r\n+OK\r\n"
    node = lambda: proxy.fleet.stats()["instances"]["user"]["nodes"]["a"]  # noqa: E731
    wait_for(lambda: node()["backing_off"] == 0, "no worker gives node a a pause any more")


TALKS = {
    "empty": ["MULTI", "EXEC"],
    "only keyless": ["MULTI", "PING", "ECHO hello", "EXEC"],
    "keyless first": ["MULTI", "PING", "SET {t}a 1", "ECHO x", "GET {t}a", "EXEC"],
    "nested": ["MULTI", "MULTI", "SET {t}a 1", "EXEC", "GET {t}a"],
    "discarded": ["SET {t}a 0", "MULTI", "SET {t}a 1", "DISCARD", "GET {t}a", "EXEC"],
    "nothing to end": ["EXEC", "DISCARD", "UNWATCH"],
    "watch inside": ["MULTI", "WATCH {t}a", "SET {t}a 1", "EXEC", "GET {t}a"],
    "unknown inside": ["MULTI", "SET {t}a 1", "NOSUCH x", "EXEC", "GET {t}a"],
    "arity inside": ["MULTI", "SET {t}a", "SET {t}a 1", "EXEC", "GET {t}a"],
    "failing inside": ["MULTI", "SET {t}a x", "INCR {t}a", "LPUSH {t}a y", "GET {t}a", "EXEC"],
    "unwatched": ["WATCH {t}a", "UNWATCH", "SET {t}a 1", "MULTI", "GET {t}a", "EXEC"],
    "unwatch inside": ["MULTI", "UNWATCH", "SET {t}a 1", "EXEC"],
    "blocking inside": ["MULTI", "BLPOP {t}l 0", "RPUSH {t}l x", "BLPOP {t}l 0", "EXEC"],
    "multi-key inside": ["MULTI", "MSET {t}a 1 {t}b 2", "MGET {t}a {t}b {t}c", "DEL {t}a {t}b {t}c", "EXEC"],
    "another database after WATCH": [
        "SET {t}a 0",
        "SELECT 1",
        "SET {t}a 1",
        "SELECT 0",
        "WATCH {t}a",
        "SELECT 1",
        "MULTI",
        "GET {t}a",
        "EXEC",
        "GET {t}a",
        "SELECT 0",
        "MULTI",
        "GET {t}a",
        "EXEC",
    ],
    "a conflict in another database": ["WATCH {t}a", "SELECT 1", "SET {t}a 1", "MULTI", "GET {t}a", "EXEC"],
    "twice": ["MULTI", "SET {t}a 1", "EXEC", "MULTI", "INCR {t}a", "EXEC", "INCR {t}a"],
    "script inside": ["MULTI", "EVAL return{KEYS[1],ARGV[1]} 1 {t}a x", "EXEC"],
    "an EXEC that is wrong": ["MULTI", "SET {t}a 1", "EXEC x", "GET {t}a", "EXEC"],
    "a DISCARD that is wrong": ["MULTI", "SET {t}a 1", "DISCARD x", "GET {t}a", "EXEC", "GET {t}a"],
    "reset": ["MULTI", "SET {t}a 1", "RESET", "GET {t}a", "EXEC"],
    "quit": ["MULTI", "SET {t}a 1"],
}


@pytest.mark.parametrize("name", TALKS)
def test_conversations_are_those_of_one_server(proxy: Proxy, oracle: Running, name: str) -> None:
    data = b"".join(encode(*line.split()) for line in TALKS[name])
    if name == "quit":
        data += encode("DISCARD")
    assert converse(proxy.port, data) == converse(oracle.port, data)
    assert converse(proxy.port, data, 1) == converse(oracle.port, data)  # one request at a time


def test_what_is_undone_costs_the_server_no_connection(proxy: Proxy, redis_nodes: list[Running]) -> None:
    (key,) = proxy.keys_on(0, 1)
    server = redis.Redis(port=redis_nodes[0].port)
    made = lambda: int(server.info("stats")["total_connections_received"])  # noqa: E731
    connection = proxy.raw()
    before = made()
    for _ in range(20):
        assert connection.redis(b"WATCH", key.encode()) == b"+OK\r\n"
        assert connection.redis(b"UNWATCH") == b"+OK\r\n"
        assert connection.redis(b"MULTI") == b"+OK\r\n"
        assert connection.redis(b"SET", key.encode(), b"1") == b"+QUEUED\r\n"
        assert connection.redis(b"DISCARD") == b"+OK\r\n"
    assert made() < before + 10
    assert proxy.client().get(key) is None


def test_a_transaction_keeps_to_what_its_client_may_reach(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running]
) -> None:
    level = "db = 4\n  timeout = { read_ms = 5000 }"
    proxy = start_proxy([node.address for node in redis_nodes], {"user": "dbs = 2"}, level)
    (key,) = proxy.keys_on(0, 1)
    client = proxy.client()
    client.set(key, "v")
    pipe = client.pipeline(transaction=True)
    pipe.execute_command("COPY", key, key, "DB", 1)
    pipe.execute_command("COPY", key, key, "DB", 1, "REPLACE")
    pipe.execute_command("DEL", key)
    assert pipe.execute() == [1, 1, 1]
    server = redis.Redis(port=redis_nodes[0].port, db=5)
    assert server.get(key) == b"v"
    connection = proxy.raw()
    for words in ((b"MOVE", key.encode(), b"2"), (b"SORT", key.encode(), b"BY", b"w*")):
        told = connection.redis(*words)
        assert connection.redis(b"MULTI") == b"+OK\r\n"
        assert connection.redis(*words) == told
        assert told.startswith((b"-ERR", b"-CROSSSLOT"))
        assert connection.redis(b"EXEC").startswith(b"-EXECABORT")


def test_a_server_that_was_replaced_executes_no_transaction(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running]
) -> None:
    """Others have gone on at another server: a conflict with them it could not notice."""
    first, second, new = (node.address for node in redis_nodes)
    proxy = start_proxy([first, second])
    (key,), (other,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    watching, queueing, empty, elsewhere = (proxy.raw() for _ in range(4))
    assert watching.redis(b"WATCH", key.encode()) == b"+OK\r\n"
    for connection in (queueing, empty, elsewhere):
        assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert elsewhere.redis(b"SET", other.encode(), b"1") == b"+QUEUED\r\n"
    assert queueing.redis(b"SET", key.encode(), b"mine") == b"+QUEUED\r\n"
    proxy.fleet.write(proxy.config.replace(first, new).replace("hash_tag", "timeout = { read_ms = 900 }\n  hash_tag"))
    assert proxy.fleet.reload().accepted
    proxy.client().set(key, "new")
    assert queueing.redis(b"EXEC").endswith(b"has taken its server away: begin anew\r\n")
    assert watching.redis(b"MULTI") == b"+OK\r\n"
    assert watching.redis(b"SET", key.encode(), b"mine").endswith(b"has taken its server away: begin anew\r\n")
    assert watching.redis(b"EXEC").startswith(b"-EXECABORT")
    assert empty.redis(b"SET", key.encode(), b"late").endswith(b"has taken its server away: begin anew\r\n")
    assert empty.redis(b"EXEC").startswith(b"-EXECABORT")
    assert redis.Redis(port=redis_nodes[0].port).get(key) is None
    assert elsewhere.redis(b"EXEC") == b"*1\r\n+OK\r\n"
    with proxy.client().pipeline() as pipe:
        pipe.watch(key)
        pipe.multi()
        pipe.append(key, "er")
        assert pipe.execute() == [5]


def attempt(connection: Raw, key: str, *first: bytes) -> list[bytes]:
    """The answers to these requests and a transaction behind them."""
    lines = [line.replace(b"%b", key.encode()) for line in (*first, b"MULTI", b"SET %b mine", b"EXEC")]
    return [connection.redis(*line.split()) for line in lines]


@pytest.mark.parametrize("first", [b"WATCH %b", b"SELECT 0", b"HELLO 3"])
def test_what_was_watched_on_a_lost_connection_counts_as_changed(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running], first: bytes
) -> None:
    """Only UNWATCH had helped: a client that is handed from user to user has no reason to say that."""
    proxy = start_proxy([redis_nodes[0].address], {"user": "dbs = 2"}, workers=1)
    connection = proxy.raw()
    assert connection.redis(b"SELECT", b"1") == connection.redis(b"WATCH", b"k") == b"+OK\r\n"
    redis.Redis(port=redis_nodes[0].port).client_kill_filter(_type="normal")
    node = lambda: proxy.fleet.stats()["instances"]["user"]["nodes"]["a"]  # noqa: E731
    wait_for(lambda: node()["connections"] == 0, "the loss is noticed")
    null = b"_\r\n" if first.startswith(b"HELLO") else b"*-1\r\n"
    assert attempt(connection, "k", first)[1:] == [b"+OK\r\n", b"+QUEUED\r\n", null]
    assert proxy.client().get("k") is proxy.client(db=1).get("k") is None
    assert attempt(connection, "k", b"WATCH %b") == [b"+OK\r\n", b"+OK\r\n", b"+QUEUED\r\n", b"*1\r\n+OK\r\n"]


def test_what_was_watched_on_a_server_that_was_replaced_counts_as_changed(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running]
) -> None:
    old, new = (node.address for node in redis_nodes[:2])
    proxy = start_proxy([old], workers=1)
    connection = proxy.raw()
    assert connection.redis(b"WATCH", b"k") == b"+OK\r\n"
    proxy.fleet.write(proxy.config.replace(old, new))
    assert proxy.fleet.reload().accepted
    for result in (b"*-1\r\n", b"*1\r\n+OK\r\n"):
        assert proxy.client().get("k") is None
        assert attempt(connection, "k", b"WATCH %b") == [b"+OK\r\n", b"+OK\r\n", b"+QUEUED\r\n", result]
    assert redis.Redis(port=redis_nodes[1].port).get("k") == b"mine"
    assert connection.redis(b"WATCH", b"k") == connection.redis(b"UNWATCH") == b"+OK\r\n"


class _Busy:
    """As a redis before 6.2 that is busy with a script: EXEC is refused, and its transaction is still there."""

    garbage, surplus, greetings, read = REDIS.garbage, REDIS.surplus, REDIS.greetings, staticmethod(REDIS.read)

    def answer(self, request: list[bytes]) -> bytes:
        return b"-BUSY Redis is busy\r\n" if request == [b"EXEC"] else REDIS.answer(request)


def test_a_transaction_that_its_server_has_not_ended_is_nobody_elses(start_proxy: Callable[..., Proxy]) -> None:
    with FakeServer(_Busy()) as server:
        client = start_proxy([server.address], workers=1).raw()
        connections = []
        for _ in range(2):
            assert client.redis(b"MULTI") == client.redis(b"SET", b"k", b"v") == b"+OK\r\n"
            assert client.redis(b"EXEC") == b"-BUSY Redis is busy\r\n"
            connections.append(server.accepted)
        assert connections[1] == connections[0] + 1


def test_another_version_after_watch_holds_inside_the_transaction(proxy: Proxy) -> None:
    connection = proxy.raw()
    connection.redis(b"HSET", b"{t}h", b"a", b"1")
    assert connection.redis(b"WATCH", b"{t}h") == b"+OK\r\n"
    assert connection.redis(b"HELLO", b"3").startswith(b"%")
    assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert connection.redis(b"HELLO", b"2") == b"-ERR Command not allowed inside a transaction\r\n"
    assert connection.redis(b"DISCARD") == b"+OK\r\n"
    assert connection.redis(b"WATCH", b"{t}h") == b"+OK\r\n"
    assert connection.redis(b"HELLO", b"2").startswith(b"*")
    assert connection.redis(b"HELLO", b"3").startswith(b"%")
    assert connection.redis(b"MULTI") == b"+OK\r\n"
    assert connection.redis(b"HGETALL", b"{t}h") == b"+QUEUED\r\n"
    assert connection.redis(b"EXEC") == b"*1\r\n%1\r\n$1\r\na\r\n$1\r\n1\r\n"


def test_a_client_that_leaves_inside_a_transaction_leaves_nothing(proxy: Proxy, redis_nodes: list[Running]) -> None:
    (key,) = proxy.keys_on(2, 1)
    connection = proxy.raw()
    connection.redis(b"WATCH", key.encode())
    connection.redis(b"MULTI")
    connection.redis(b"SET", key.encode(), b"1")
    connection.close()
    client = proxy.client()
    for _ in range(30):  # on borrowed connections, which must not be inside the transaction of somebody else
        pipe = client.pipeline(transaction=True)
        pipe.get(key)
        pipe.exists(key)
        assert pipe.execute() == [None, 0]


def test_databases_have_transactions_of_their_own(proxy: Proxy) -> None:
    (key,) = proxy.keys_on(0, 1)
    first, second = proxy.client(), proxy.client(db=3)
    for client, value in ((first, b"0"), (second, b"3")):
        pipe = client.pipeline(transaction=True)
        pipe.set(key, value)
        pipe.get(key)
        assert pipe.execute() == [True, value]
    assert (first.get(key), second.get(key)) == (b"0", b"3")
