"""Sick nodes: they fail their own keys within their deadline, with a name; everything else goes on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import psutil
import pytest

from tests.front.redis.conftest import DEADLINE_S, IMPATIENT, LATE_S, POLICIES, Proxy, encode
from tests.kit.fakes import REDIS, FakeServer
from tests.kit.fakes.redis import value_of
from tests.kit.fakes.server import BEHAVIOURS
from tests.kit.servers import Running
from tests.kit.wait import wait_for
from tests.protocol.raw import Raw

BAD = ["silent", "half", "reset", "garbage", "too_much", "double", "hangs_up", "endless", "deaf"]


class Sick:
    """A proxy before two real nodes and, as node b, a fake that greets rightly and then does what it is told."""

    def __init__(self, proxy: Proxy, fake: FakeServer) -> None:
        self.proxy = proxy
        self.fake = fake
        self.good = proxy.keys_on(0, 3) + proxy.keys_on(2, 3)
        self.bad = proxy.keys_on(1, 4)
        self.prefix = f"-ERR instance '{{}}' node 'b (127.0.0.1:{fake.port})': "

    def heal(self) -> None:
        """Node b works, and every worker and instance has noticed."""
        self.fake.behave("good")
        for name in self.proxy.ports:
            for _ in range(6):  # new connections: they spread over the workers
                connection = self.proxy.raw(name)
                wait_for(lambda at=connection: self.answers(at), "node b is back")  # type: ignore[misc]
        self.proxy.close_clients()

    def turn(self, behaviour: str) -> None:
        """Another server takes the place of node b: connections are closed, and new ones see another behaviour."""
        self.fake.behave(behaviour)
        self.fake.drop()

    def answers(self, connection: Raw) -> bool:
        return connection.redis(b"GET", self.bad[0].encode()) == named(self.bad[0])


def named(key: str) -> bytes:
    """The fakes' value of a key, as a reply."""
    value = value_of(key.encode())
    return b"$%d\r\n%b\r\n" % (len(value), value)


@pytest.fixture(scope="module")
def _sick(_redis_trio: list[Running], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sick]:
    with FakeServer(REDIS, polite=True) as fake:
        nodes = [_redis_trio[0].address, fake.address, _redis_trio[2].address]
        proxy = Proxy(tmp_path_factory.mktemp("sick"), nodes, POLICIES, IMPATIENT)
        yield Sick(proxy, fake)
        proxy.close_clients()
        log = proxy.fleet.read_log()
        proxy.fleet.stop()
        assert "Traceback" not in log, log


@pytest.fixture
def sick(_sick: Sick, redis_nodes: list[Running]) -> Iterator[Sick]:
    client = _sick.proxy.client()
    for key in _sick.good:
        client.set(key, value_of(key.encode()))
    _sick.heal()
    yield _sick
    _sick.proxy.close_clients()


@pytest.mark.parametrize("behaviour", BAD)
def test_a_sick_node_fails_its_own_keys_and_the_pipeline_goes_on(sick: Sick, behaviour: str) -> None:
    connection = sick.proxy.raw()
    sick.turn(behaviour)
    keys = [key for pair in zip(sick.good, sick.bad, strict=False) for key in pair] + sick.good
    began = monotonic()
    connection.sock.sendall(b"".join(encode("GET", key) for key in keys) + encode("PING"))
    for key in keys:
        reply = connection._resp()
        if key in sick.good:
            assert reply == named(key)
        else:
            assert reply.decode().startswith(sick.prefix.format("user")), reply
    assert connection._resp() == b"+PONG\r\n"
    assert monotonic() - began < DEADLINE_S + LATE_S
    sick.fake.behave("good")
    wait_for(lambda: sick.answers(connection), "node b is back")
    assert [connection.redis(b"GET", key.encode()) for key in keys] == [named(key) for key in keys]


@pytest.mark.parametrize("behaviour", BAD)
def test_partial_reads_follow_the_policy(sick: Sick, behaviour: str) -> None:
    keys = [sick.good[0], sick.bad[0], sick.good[3], sick.bad[1], sick.bad[0]]
    request = encode("MGET", *keys)
    connections = {name: sick.proxy.raw(name) for name in POLICIES}
    sick.fake.behave(behaviour)
    for name, connection in connections.items():
        connection.sock.sendall(request)
        reply = connection._resp()
        prefix = sick.prefix.format(name).encode()
        if name == "user":
            assert reply.startswith(prefix)
            assert reply.endswith(b" (3 of 5 keys)\r\n")
            continue
        elements = reply.split(prefix)
        assert reply.startswith(b"*5\r\n" + named(keys[0]))
        assert named(keys[2]) in reply
        if name == "nil":
            assert reply == b"*5\r\n" + named(keys[0]) + b"$-1\r\n" + named(keys[2]) + b"$-1\r\n" * 2
        else:
            assert len(elements) == 4
        assert connection.redis(b"PING") == b"+PONG\r\n"


@pytest.mark.parametrize(
    "words", ["MSET {0} 1 {1} 2", "DEL {0} {1}", "EXISTS {0} {1}", "TOUCH {0} {1}", "UNLINK {0} {1}"]
)
def test_a_partial_failure_says_how_much_is_missing(sick: Sick, words: str) -> None:
    connection = sick.proxy.raw()
    sick.fake.behave("reset")
    reply = connection.redis(*words.format(sick.good[0], sick.bad[0]).encode().split())
    assert reply.decode().startswith(sick.prefix.format("user"))
    assert reply.endswith(b" (1 of 2 keys)\r\n")


def test_an_error_reply_of_a_server_is_passed_on_with_the_number_of_keys(
    proxy: Proxy, redis_nodes: list[Running]
) -> None:
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    redis_nodes[1].ask(b"CONFIG SET maxmemory 1\r\n")
    try:
        reply = proxy.raw().redis(b"MSET", a.encode(), b"1", b.encode(), b"2")
    finally:
        redis_nodes[1].ask(b"CONFIG SET maxmemory 0\r\n")
    assert reply == b"-OOM command not allowed when used memory > 'maxmemory'. (1 of 2 keys)\r\n"


MISFITS: dict[str, bytes] = {
    "short": b"*1\r\n$1\r\nx\r\n", "long": b"*9\r\n" + b"$1\r\nx\r\n" * 9,
    "nested": b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n", "no array": b"+OK\r\n", "nil": b"*-1\r\n",
    "numbers": b"*2\r\n:1\r\n:2\r\n", "empty": b"*0\r\n", "string": b"$1\r\nx\r\n", "map": b"%1\r\n+a\r\n+b\r\n",
}  # fmt: skip


@pytest.mark.parametrize("misfit", MISFITS.values(), ids=MISFITS)
def test_an_answer_that_does_not_fit_its_question_is_not_passed_on(
    sick: Sick, misfit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def misfitting(talk: Any, reply: bytes) -> None:
        talk.send(misfit if reply.startswith(b"*") else reply)

    monkeypatch.setitem(BEHAVIOURS, "misfitting", misfitting)
    for name in POLICIES:
        sick.fake.behave("good")
        connection = sick.proxy.raw(name)
        wait_for(lambda at=connection: sick.answers(at), "node b is back")  # type: ignore[misc]
        sick.fake.behave("misfitting")
        reply = connection.redis(b"MGET", sick.good[0].encode(), *(key.encode() for key in sick.bad[:2]))
        error = sick.prefix.format(name).encode() + b"its answer does not fit the request"
        expected = {"user": error, "nil": b"*3\r\n" + named(sick.good[0]) + b"$-1\r\n" * 2}
        assert reply.startswith(expected.get(name, b"*3\r\n" + named(sick.good[0]) + error))
        assert connection.redis(b"PING") == b"+PONG\r\n"


def test_a_surplus_answer_never_reaches_a_client(sick: Sick) -> None:
    connections = [sick.proxy.raw() for _ in range(8)]
    for behaviour in ("too_much", "double", "good") * 5:
        sick.turn(behaviour)
        for connection in connections:
            connection.sock.sendall(encode("GET", sick.bad[0]) + encode("GET", sick.good[0]))
        for connection in connections:
            reply = connection._resp()
            assert reply == named(sick.bad[0]) or reply.decode().startswith(sick.prefix.format("user")), reply
            assert connection._resp() == named(sick.good[0])


def test_a_server_that_closes_when_idle_makes_no_error(sick: Sick) -> None:
    connection = sick.proxy.raw()
    sick.fake.behave("closes")
    for _ in range(30):
        before = sick.fake.closed
        assert sick.answers(connection)
        wait_for(lambda: sick.fake.closed > before, "the server has closed")  # noqa: B023
        assert connection.redis(b"GET", sick.good[0].encode()) == named(sick.good[0])


def test_a_node_that_does_not_read_is_busy_in_time_and_costs_bounded_memory(sick: Sick) -> None:
    workers = [psutil.Process(pid) for pid in sick.proxy.fleet.worker_pids()]
    before = sum(worker.memory_info().rss for worker in workers)
    connections = [sick.proxy.raw() for _ in range(20)]
    sick.fake.behave("deaf")
    big = encode("SET", sick.bad[0], b"x" * 4_000_000)
    began = monotonic()
    for connection in connections:
        connection.sock.sendall(big)
    most = 0
    for connection in connections:
        most = max(most, sum(worker.memory_info().rss for worker in workers))
        assert connection._resp().startswith(b"-ERR instance 'user' node 'b ")
        assert connection.redis(b"GET", sick.good[0].encode()) == named(sick.good[0])
    assert monotonic() - began < 10
    assert most - before < 250 << 20


def test_a_slow_reader_gets_a_reply_of_fifty_megabytes(proxy: Proxy) -> None:
    value = bytes(range(256)) * 4096 * 50
    client = proxy.client()
    client.set("big", value)
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.settimeout(20)
        sock.connect(("127.0.0.1", proxy.port))
        sock.sendall(encode("GET", "big") + encode("PING"))
        expected = memoryview(b"$%d\r\n%b\r\n+PONG\r\n" % (len(value), value))
        done = 0
        while done < len(expected):
            part = sock.recv(200_000)
            assert part == expected[done : done + len(part)]
            done += len(part)
        assert client.get("small") is None


def test_a_slow_reader_of_a_big_reply_gets_all_of_it_and_costs_bounded_memory(
    start_proxy: Callable[..., Proxy], redis_nodes: list[Running]
) -> None:
    proxy = start_proxy([node.address for node in redis_nodes], workers=1)
    client = proxy.client()
    value = bytes(range(256)) * 4096  # 1 MiB
    client.set("big", value)
    (pid,) = proxy.fleet.worker_pids()
    before = psutil.Process(pid).memory_info().rss
    sock = socket.create_connection(("127.0.0.1", proxy.port), timeout=20)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    count = 300
    sock.sendall(encode("GET", "big") * count + encode("PING"))
    reply = b"$%d\r\n%b\r\n" % (len(value), value)
    with sock, sock.makefile("rb", buffering=65536) as stream:
        most = 0
        for number in range(count):
            assert stream.read(len(reply)) == reply
            if number % 20 == 0:
                most = max(most, psutil.Process(pid).memory_info().rss)
                assert client.get("big") == value  # nobody else is held up
        assert stream.readline() == b"+PONG\r\n"
    assert most - before < 200 << 20


def test_a_count_that_no_client_could_read_is_not_passed_on(sick: Sick, monkeypatch: pytest.MonkeyPatch) -> None:
    def counting(talk: Any, reply: bytes) -> None:
        talk.send(b":9223372036854775807\r\n" if reply.startswith(b":") else reply)

    monkeypatch.setitem(BEHAVIOURS, "counting", counting)
    connection = sick.proxy.raw()
    wait_for(lambda: sick.answers(connection), "node b is back")
    sick.fake.behave("counting")
    error = sick.prefix.format("user").encode() + b"its answer does not fit the request"
    assert connection.redis(b"DEL", sick.good[0].encode(), *(key.encode() for key in sick.bad[:2])).startswith(error)
    assert connection.redis(b"PING") == b"+PONG\r\n"
