"""Blocking commands and channels, each on a connection of its own."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable

import pytest

from tests.front.redis.conftest import Proxy, encode
from tests.kit.servers import Running
from tests.kit.wait import wait_for

BLOCKING: list[tuple[str, ...]] = [
    ("BLPOP", "{t}l", "0"), ("BRPOP", "{t}l", "{t}m", "0"), ("BLMOVE", "{t}l", "{t}m", "LEFT", "RIGHT", "0"),
    ("BRPOPLPUSH", "{t}l", "{t}m", "0"), ("BLMPOP", "0", "2", "{t}x", "{t}l", "LEFT"), ("BZPOPMIN", "{t}z", "0"),
    ("BZMPOP", "0", "1", "{t}z", "MIN"), ("XREAD", "BLOCK", "0", "STREAMS", "{t}s", "$"),
]  # fmt: skip
FEED = [("RPUSH", "{t}l", "item"), ("ZADD", "{t}z", "1", "item"), ("XADD", "{t}s", "1-1", "f", "item")]


def blocked(nodes: list[Running]) -> int:
    """Connections that wait, on all nodes."""
    infos = [node.ask(b"INFO clients\r\n", b"blocked_clients:") for node in nodes]
    return sum(int(info.split(b"blocked_clients:")[1].split()[0]) for info in infos)


def feed(proxy: Proxy) -> None:
    for words in FEED:
        proxy.client().execute_command(*words)


@pytest.mark.parametrize("words", BLOCKING, ids=lambda words: words[0])
def test_a_blocking_command_waits_for_others_and_leaves_them_in_peace(
    proxy: Proxy, redis_nodes: list[Running], oracle: Running, words: tuple[str, ...]
) -> None:
    connection = proxy.raw()
    connection.sock.sendall(encode("PING", "before") + encode(*words) + encode("PING", "after"))
    wait_for(lambda: blocked(redis_nodes) == 1, "it blocks")
    assert proxy.client().mget([f"key{number}" for number in range(30)]) == [None] * 30
    feed(proxy)
    for one in FEED:
        oracle.ask(encode(*one))
    if words[0] == "XREAD":
        words = ("XREAD", "STREAMS", "{t}s", "0")
    answer = oracle.ask(encode(*words) + encode("PING", "after"), b"$5\r\nafter\r\n")
    got = b""
    while not got.endswith(b"$5\r\nafter\r\n"):
        got += connection.sock.recv(65536)
    assert got == b"$6\r\nbefore\r\n" + answer


def reset(sock: socket.socket) -> None:
    """End a connection without a good-bye."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@pytest.mark.parametrize("leave", [socket.socket.close, reset], ids=["closes", "resets"])
@pytest.mark.parametrize("behind", [b"", encode("PING")], ids=["alone", "with more behind it"])
def test_nothing_is_popped_for_a_client_that_went_away(
    proxy: Proxy, redis_nodes: list[Running], leave: Callable[[socket.socket], None], behind: bytes
) -> None:
    sock = socket.create_connection(("127.0.0.1", proxy.port))
    sock.sendall(encode("BLPOP", "{t}l", "0"))
    wait_for(lambda: blocked(redis_nodes) == 1, "it blocks")
    sock.sendall(behind)
    leave(sock)
    wait_for(lambda: blocked(redis_nodes) == 0, "the server is told")
    client = proxy.client()
    client.rpush("{t}l", "item")
    assert client.lrange("{t}l", 0, -1) == [b"item"]


def test_a_timeout_is_the_servers(proxy: Proxy) -> None:
    assert proxy.client().blpop(["{t}l", "{t}m"], timeout=0.05) is None


def test_keys_of_two_nodes_cannot_be_waited_for(proxy: Proxy) -> None:
    (a,), (b,) = proxy.keys_on(0, 1), proxy.keys_on(1, 1)
    connection = proxy.raw()
    assert connection.redis(b"BLPOP", a.encode(), b.encode(), b"0").startswith(b"-CROSSSLOT")
    assert connection.redis(b"BLPOP", b"a", b"nonsense") == b"-ERR timeout is not a float or out of range\r\n"
    assert connection.redis(b"PING") == b"+PONG\r\n"


def test_many_clients_wait_at_once(proxy: Proxy, redis_nodes: list[Running]) -> None:
    waiting = [proxy.raw() for _ in range(40)]
    for number, connection in enumerate(waiting):
        connection.sock.sendall(encode("BLPOP", f"list{number}", "0"))
    wait_for(lambda: blocked(redis_nodes) == 40, "all wait")
    client = proxy.client()
    for number in range(40):
        client.rpush(f"list{number}", f"item {number}")
    for number, connection in enumerate(waiting):
        item, name = b"item %d" % number, b"list%d" % number
        expected = b"*2\r\n$%d\r\n%b\r\n$%d\r\n%b\r\n" % (len(name), name, len(item), item)
        assert connection.file.read(len(expected)) == expected


def test_wait_for_replicas_does_not_hold_up_others(proxy: Proxy) -> None:
    """There are none: with a timeout the answer is 0 replicas."""
    connection = proxy.raw()
    connection.sock.sendall(encode("WAIT", "1", "300"))
    client = proxy.client()
    for _ in range(20):
        assert client.set("a", "1")
    assert connection.file.readline() == b":0\r\n"


def test_messages_reach_every_listener_of_a_channel_on_any_worker(proxy: Proxy) -> None:
    listeners = [proxy.client(protocol=2 + number % 2).pubsub() for number in range(10)]
    for listener in listeners:
        listener.subscribe("news", "other")
        listener.psubscribe("n*")
        for _ in range(3):
            assert listener.get_message(timeout=5)["type"] in ("subscribe", "psubscribe")
    publisher = proxy.client()
    for number in range(20):
        assert publisher.publish("news", f"{number}") >= 10
    for listener in listeners:
        seen = [listener.get_message(timeout=5) for _ in range(40)]
        assert [one["data"] for one in seen if one["type"] == "message"] == [f"{n}".encode() for n in range(20)]
        assert [one["data"] for one in seen if one["type"] == "pmessage"] == [f"{n}".encode() for n in range(20)]
        listener.close()


def test_a_listener_may_only_listen_in_resp2(proxy: Proxy, oracle: Running) -> None:
    lines = ["SUBSCRIBE a b", "GET x", "PING", "PING hello", "PING x y", "PSUBSCRIBE p*", "UNSUBSCRIBE a",
             "UNSUBSCRIBE", "GET x", "PUNSUBSCRIBE", "GET x", "UNSUBSCRIBE", "PUNSUBSCRIBE z", "SUBSCRIBE c", "RESET",
             "GET x"]  # fmt: skip
    answers = []
    for port in (proxy.port, oracle.port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock, sock.makefile("rb") as stream:
            sock.sendall(b"".join(encode(*line.split()) for line in lines) + encode("QUIT"))
            answers.append(stream.read())
    assert answers[0] == answers[1]


def test_pushes_and_replies_mix_in_resp3(proxy: Proxy) -> None:
    connection = proxy.raw()
    connection.redis(b"HELLO", b"3")
    assert connection.redis(b"SUBSCRIBE", b"news") == b">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"
    publisher = proxy.client()
    publisher.set("a", "1")
    stop = threading.Event()

    def publish() -> None:
        while not stop.is_set():
            publisher.publish("news", "x" * 1000)

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        connection.sock.sendall(encode("GET", "a") * 500)
        replies = pushes = 0
        while replies < 500 or pushes < 20:
            message = connection._resp()
            if message.startswith(b">"):
                assert message == b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1000\r\n" + b"x" * 1000 + b"\r\n"
                pushes += 1
            else:
                assert message == b"$1\r\n1\r\n"
                replies += 1
    finally:
        stop.set()
        thread.join()


def test_listeners_that_leave_are_forgotten(proxy: Proxy, redis_nodes: list[Running]) -> None:
    def connections() -> int:
        return sum(
            int(node.ask(b"INFO clients\r\n", b"connected_clients:").split(b"connected_clients:")[1].split()[0])
            for node in redis_nodes
        )

    proxy.client().mset({f"key{number}": "x" for number in range(50)})
    before = connections()
    listeners = [proxy.raw() for _ in range(20)]
    for listener in listeners:
        assert listener.redis(b"SUBSCRIBE", b"gone").startswith(b"*3")
    assert connections() >= before + 20
    for listener in listeners:
        listener.close()
    wait_for(lambda: connections() <= before, "their connections are closed")
    assert proxy.client().publish("gone", "x") == 0
