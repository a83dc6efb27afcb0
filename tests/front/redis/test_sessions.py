"""What belongs to one client: database, protocol version, name, login, CLIENT REPLY; and what is refused."""

from __future__ import annotations

import pytest
import redis

from tests.front.redis.conftest import Proxy, converse, encode
from tests.kit.servers import Running


def test_a_database_is_kept_for_its_client_alone(proxy: Proxy, redis_nodes: list[Running]) -> None:
    clients = [proxy.client(db=number) for number in range(4)]
    keys = [f"key{number}" for number in range(20)]
    for number, client in enumerate(clients):
        client.mset({key: f"{key} of {number}" for key in keys})
    for number, client in enumerate(clients):
        assert client.mget(keys) == [f"{key} of {number}".encode() for key in keys]
        assert client.dbsize() == 20
    assert (
        sum(int(node.ask(b"SELECT 2\r\nDBSIZE\r\n", b"\n:").split(b":")[1].split()[0] or 0) for node in redis_nodes)
        == 20
    )


def test_select_changes_what_follows_in_the_same_pipeline(proxy: Proxy, oracle: Running) -> None:
    lines = [
        "SET {t}a 0",
        "SELECT 1",
        "GET {t}a",
        "SET {t}a 1",
        "SELECT 16",
        "GET {t}a",
        "SELECT -1",
        "SELECT 0",
        "GET {t}a",
    ]
    data = b"".join(encode(*line.split()) for line in lines)
    assert converse(proxy.port, data) == converse(oracle.port, data)


@pytest.mark.parametrize("protocol", [2, 3])
def test_replies_have_the_types_of_the_clients_version(proxy: Proxy, oracle: Running, protocol: int) -> None:
    lines = [
        f"HELLO {protocol}", "GET {t}none", "HSET {t}h a 1 b 2", "HGETALL {t}h", "SADD {t}s a", "SMEMBERS {t}s",
        "ZADD {t}z 1.5 a", "ZSCORE {t}z a", "ZRANGE {t}z 0 -1 WITHSCORES", "MGET {t}a {t}b", "CONFIG GET nosuchthing",
    ]  # fmt: skip
    data = b"".join(encode(*line.split()) for line in lines)
    ours, theirs = converse(proxy.port, data), converse(oracle.port, data)
    assert ours.partition(b"modules")[2] == theirs.partition(b"modules")[2]


def test_versions_do_not_mix(proxy: Proxy) -> None:
    old, new = proxy.client(protocol=2), proxy.client(protocol=3)
    (key,) = proxy.keys_on(0, 1)
    old.hset(key, mapping={"a": "1"})
    for _ in range(3):
        assert old.execute_command("HGETALL", key, NEVER_DECODE=True) in ({b"a": b"1"}, [b"a", b"1"])
        assert new.hgetall(key) == {b"a": b"1"}
    raw = proxy.raw()
    assert raw.redis(b"HGETALL", key.encode()) == b"*2\r\n$1\r\na\r\n$1\r\n1\r\n"
    raw.redis(b"HELLO", b"3")
    assert raw.redis(b"HGETALL", key.encode()) == b"%1\r\n$1\r\na\r\n$1\r\n1\r\n"
    assert raw.redis(b"RESET") == b"+RESET\r\n"
    assert raw.redis(b"HGETALL", key.encode()) == b"*2\r\n$1\r\na\r\n$1\r\n1\r\n"


def test_hello_logs_in_and_names(proxy: Proxy) -> None:
    connection = proxy.raw("locked")
    assert connection.redis(b"GET", b"a") == b"-NOAUTH Authentication required.\r\n"
    assert connection.redis(b"HELLO", b"3").startswith(b"-NOAUTH HELLO must be called")
    assert connection.redis(b"HELLO", b"3", b"AUTH", b"default", b"wrong").startswith(b"-WRONGPASS")
    answer = connection.redis(b"HELLO", b"3", b"AUTH", b"default", b"secret", b"SETNAME", b"me")
    assert answer.startswith(b"%")
    assert connection.redis(b"CLIENT", b"GETNAME") == b"$2\r\nme\r\n"
    assert connection.redis(b"GET", b"a") == b"_\r\n"
    assert connection.redis(b"HELLO", b"4").startswith(b"-NOPROTO")
    assert connection.redis(b"PING") == b"+PONG\r\n"


def test_a_password_is_asked_for_and_checked(proxy: Proxy) -> None:
    with pytest.raises(redis.AuthenticationError):
        proxy.client("locked").get("a")
    with pytest.raises(redis.AuthenticationError):
        proxy.client("locked", password="wrong").get("a")
    with pytest.raises(redis.AuthenticationError):
        proxy.client("locked", username="other", password="secret").get("a")
    for options in ({"password": "secret"}, {"username": "default", "password": "secret", "protocol": 3}):
        client = proxy.client("locked", **options)
        assert client.set("a", "1")
        assert client.get("a") == b"1"
    raw = proxy.raw("locked")
    pipeline = [
        encode("MGET", "a", "b"),
        encode("MULTI"),
        encode("SUBSCRIBE", "c"),
        encode("AUTH", "secret"),
        encode("GET", "a"),
    ]
    raw.sock.sendall(b"".join(pipeline))
    assert raw.file.read(3 * 34) == b"-NOAUTH Authentication required.\r\n" * 3
    assert raw.file.read(5 + 7) == b"+OK\r\n$1\r\n1\r\n"
    assert raw.redis(b"RESET") == b"+RESET\r\n"
    assert raw.redis(b"GET", b"a") == b"-NOAUTH Authentication required.\r\n"


def test_replies_can_be_switched_off(proxy: Proxy) -> None:
    connection = proxy.raw()
    lines = ["SET a 1", "CLIENT REPLY SKIP", "SET a 2", "GET a", "CLIENT REPLY OFF", "SET a 3", "MGET a b c d e f",
             "NOSUCH", "GET", "SELECT 1", "SELECT 0", "MULTI", "SET a 4", "EXEC", "CLIENT REPLY SKIP", "GET a",
             "CLIENT REPLY ON", "GET a"]  # fmt: skip
    connection.sock.sendall(b"".join(encode(*line.split()) for line in lines))
    assert connection.file.read(5 + 7 + 5 + 7) == b"+OK\r\n$1\r\n2\r\n+OK\r\n$1\r\n4\r\n"
    assert connection.redis(b"PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    "lines",
    [
        ["CLIENT REPLY OFF", "RESET", "PING", "CLIENT REPLY SKIP", "RESET", "PING"],
        ["CLIENT REPLY OFF", "RESET x", "PING", "CLIENT REPLY NO", "CLIENT REPLY ON"],
        ["CLIENT REPLY SKIP", "CLIENT REPLY NO", "PING"],
        ["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "PING", "ECHO x", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "PING"],
    ],
)
def test_of_replies_that_are_switched_off_those_are_heard_that_redis_lets_hear(
    proxy: Proxy, oracle: Running, lines: list[str]
) -> None:
    """A client that waits for an answer to RESET waits for ever without, and one more answer is taken for the next."""
    data = b"".join(encode(*line.split()) for line in [*lines, "ECHO end"])
    assert converse(proxy.port, data) == converse(oracle.port, data)


def test_inline_commands_are_served(proxy: Proxy, oracle: Running) -> None:
    data = b"SET {t}a \"hello \\x41\\n\"\r\nGET {t}a\nMSET {t}b 1 '{t}c' 2\r\nMGET {t}a {t}b {t}c x y z\r\n\r\nPING\r\n"
    assert converse(proxy.port, data) == converse(oracle.port, data)


REFUSED = [
    "FLUSHALL", "KEYS *", "SHUTDOWN", "MONITOR", "PSYNC ? -1", "CONFIG SET a b", "DEBUG SLEEP 0", "REPLICAOF NO ONE",
    "SLAVEOF NO ONE", "SYNC", "REPLCONF x y", "MIGRATE h 1 k 0 1", "ACL LIST", "CLUSTER NODES", "SAVE", "MODULE LOAD x",
    "CLIENT KILL ID 1", "CLIENT PAUSE 1", "SWAPDB 0 1", "CLIENT TRACKING ON", "FAILOVER",
]  # fmt: skip


def test_errors_keep_the_connection_and_the_other_replies(proxy: Proxy) -> None:
    connection = proxy.raw()
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    bad = {
        "NOSUCH x y": b"-ERR unknown command 'NOSUCH', with args beginning with: 'x' 'y' \r\n",
        "GET": b"-ERR wrong number of arguments for 'get' command\r\n",
        "MSET a": b"-ERR wrong number of arguments for 'mset' command\r\n",
        "MSET a 1 b": b"-ERR wrong number of arguments for 'mset' command\r\n",
        "MGET": b"-ERR wrong number of arguments for 'mget' command\r\n",
        "CLIENT NOSUCH": b"-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n",
        f"RENAME {a} {b}": b"-CROSSSLOT Keys in request don't hash to the same slot\r\n",
        f"SINTER {a} {b}": b"-CROSSSLOT Keys in request don't hash to the same slot\r\n",
        f"MSETNX {a} 1 {b} 2": b"-CROSSSLOT Keys in request don't hash to the same slot\r\n",
    }
    data = b"".join(encode("ECHO", line) + encode(*line.split()) for line in bad)
    expected = b"".join(b"$%d\r\n%b\r\n%b" % (len(line), line.encode(), reply) for line, reply in bad.items())
    assert converse(proxy.port, data) == expected
    for line in REFUSED:
        reply = connection.redis(*line.encode().split())
        assert reply.startswith(b"-ERR "), (line, reply)
        assert connection.redis(b"PING") == b"+PONG\r\n"


def test_the_allow_list_opens_dangerous_commands(proxy: Proxy) -> None:
    client = proxy.client("open")
    keys = {f"key{number}".encode() for number in range(50)}
    client.mset(dict.fromkeys(keys, "x"))
    assert set(client.keys("key*")) == keys
    assert client.dbsize() == 50
    with pytest.raises(redis.ResponseError, match="'FLUSHALL' is not allowed by instance 'user'"):
        proxy.client("user").flushall()
    assert client.dbsize() == 50
    assert client.flushall()
    assert client.dbsize() == 0


def test_scripts_run_where_their_keys_are(proxy: Proxy) -> None:
    client = proxy.client()
    script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])"
    for shard in range(3):
        (key,) = proxy.keys_on(shard, 1)
        assert client.eval(script, 1, key, "x") == b"x"
        assert client.get(key) == b"x"
    sha = client.script_load(script)
    assert client.script_exists(sha, "0" * 40) == [True, False]
    for shard in range(3):
        (key,) = proxy.keys_on(shard, 1)
        assert client.evalsha(sha, 1, key, "y") == b"y"
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    with pytest.raises(redis.ResponseError, match="hash to the same slot"):
        client.eval("return 1", 2, a, b)
    assert client.eval("return 1", 0) == 1
    assert len(client.eval("return redis.status_reply(string.rep('x', 200000))", 0)) == 200_000


def test_scan_finds_all_that_was_there_throughout(proxy: Proxy) -> None:
    client, rival = proxy.client(), proxy.client()
    lasting = {f"lasting:{number}".encode() for number in range(500)}
    client.mset(dict.fromkeys(lasting, "x"))
    seen: set[bytes] = set()
    cursor, turn = 0, 0
    while True:
        cursor, keys = client.scan(cursor, count=20)
        seen.update(key for key in keys if isinstance(key, bytes))
        turn += 1
        rival.mset({f"coming:{turn}:{number}": "x" for number in range(10)})
        rival.delete(*(f"coming:{turn - 3}:{number}" for number in range(10)))
        if cursor == 0:
            break
    assert lasting <= seen
    assert all(key.startswith((b"lasting:", b"coming:")) for key in seen)
    assert set(client.scan_iter("lasting:1*", count=7)) == {key for key in lasting if key.startswith(b"lasting:1")}
    with pytest.raises(redis.ResponseError):
        client.execute_command("SCAN", "nonsense")
    with pytest.raises(redis.ResponseError):
        client.execute_command("SCAN", str(2**64))
    assert client.ping()


def test_one_client_reads_what_another_wrote_whatever_worker_they_meet(proxy: Proxy) -> None:
    writer = proxy.client()
    readers = [proxy.client() for _ in range(12)]
    for number in range(50):
        writer.mset({f"key{index}": f"{number}" for index in range(9)})
        for reader in readers:
            assert reader.mget([f"key{index}" for index in range(9)]) == [f"{number}".encode()] * 9
    pids = {reader.info()["process_id"] for reader in readers}
    assert len(pids) == 2


def test_a_client_that_leaves_in_the_middle_does_not_disturb_others(proxy: Proxy) -> None:
    client = proxy.client()
    client.mset({f"key{number}": f"value of key{number}" for number in range(100)})
    request = b"".join(encode("GET", f"key{number}") for number in range(100))
    for cut in (1, 10, 31, len(request) // 2, len(request) - 1, len(request)):
        for _ in range(5):
            leaver = proxy.raw()
            leaver.sock.sendall(request[:cut])
            leaver.close()
            assert client.mget([f"key{number}" for number in range(100)]) == [
                f"value of key{number}".encode() for number in range(100)
            ]
