"""What goes wrong at a server or in the client's bytes costs that request and nothing else."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.kit.fakes import MEMCACHE, FakeServer
from tests.kit.fakes.memcache import item
from tests.kit.fakes.server import Speech
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for
from tests.kit.worker import Worker
from tests.protocol.memcache.conftest import instance
from tests.protocol.memcache.requests import random_stream
from tests.protocol.raw import Raw

KEYS = [b"key%d" % number for number in range(12)]


@contextmanager
def served(addresses: list[str], on_partial: str = "error") -> Iterator[tuple[Worker, Raw]]:
    """A worker over these nodes (n0, n1 ...) and a client."""
    with Worker(instance("mc", addresses, on_partial)) as worker:
        raw = Raw(worker.ports["mc"])
        try:
            yield worker, raw
        finally:
            raw.close()


def fill(raw: Raw) -> None:
    for key in KEYS:
        assert raw.memcache(b"set %b 0 0 %d\r\n%b\r\n" % (key, len(key), key)) == b"STORED\r\n"


def value(key: bytes) -> bytes:
    return b"VALUE %b 0 %d\r\n%b\r\n" % (key, len(key), key)


def test_a_dead_node_fails_its_own_keys_only(memcached_nodes: list[Running]) -> None:
    addresses = [node.address for node in memcached_nodes]
    with served(addresses) as (_, raw):
        fill(raw)
    dead = f"127.0.0.1:{free_port()}"
    with served([addresses[0], dead, addresses[2]]) as (worker, raw):
        replies = [raw.memcache(b"get %b\r\n" % key) for key in KEYS]
        failed = [reply for reply in replies if reply.startswith(b"SERVER_ERROR")]
        assert 0 < len(failed) < len(KEYS)
        assert all(b"instance 'mc' node 'n1 (%b)'" % dead.encode() in reply for reply in failed)
        assert [reply for reply in replies if reply not in failed] == [
            value(key) + b"END\r\n" for key, reply in zip(KEYS, replies, strict=True) if reply not in failed
        ]
        pipeline = raw.memcache(b"".join(b"get %b\r\n" % key for key in KEYS))
        assert pipeline.count(b"END\r\n") == len(KEYS) - len(failed)
        assert pipeline.count(b"SERVER_ERROR ") == len(failed)
        assert sum(worker.errors("mc").values()) == 2 * len(failed)


@pytest.mark.parametrize("on_partial", ["error", "nil", "element"])
def test_a_retrieval_of_many_keys_with_a_dead_node(memcached_nodes: list[Running], on_partial: str) -> None:
    addresses = [node.address for node in memcached_nodes]
    with served(addresses) as (_, raw):
        fill(raw)
    with served([addresses[0], f"127.0.0.1:{free_port()}", addresses[2]], on_partial) as (worker, raw):
        there = [key for key in KEYS if raw.memcache(b"get %b\r\n" % key) == value(key) + b"END\r\n"]
        before = sum(worker.errors("mc").values())
        reply = raw.memcache(b"get %b\r\n" % b" ".join(KEYS))
        if on_partial == "error":
            assert reply.startswith(b"SERVER_ERROR instance 'mc' node 'n1 ")
            assert reply.endswith(b" (%d of %d keys)\r\n" % (len(KEYS) - len(there), len(KEYS)))
            assert reply.count(b"\r\n") == 1
        else:
            assert reply == b"".join(value(key) for key in there) + b"END\r\n"
        assert sum(worker.errors("mc").values()) == before + 1
        assert raw.memcache(b"get %b\r\n" % b" ".join(there)) == b"".join(map(value, there)) + b"END\r\n"


@pytest.mark.parametrize(
    "behaviour", ["garbage", "too_much", "half", "reset", "silent", "double", "hangs_up", "endless"]
)
def test_a_node_that_misbehaves_never_gives_a_wrong_value(memcached_nodes: list[Running], behaviour: str) -> None:
    with FakeServer(MEMCACHE) as fake, served([memcached_nodes[0].address, fake.address]) as (_, raw):
        mine = {key: raw.memcache(b"get %b\r\n" % key) == item(key, b"value of " + key) + b"END\r\n" for key in KEYS}
        assert True in mine.values()
        assert False in mine.values()
        fake.behave(behaviour)
        for _ in range(3):
            replies = raw.memcache(b"".join(b"get %b\r\n" % key for key in KEYS)).split(b"\r\n")
            for line in replies:
                assert line.startswith((b"SERVER_ERROR", b"END", b"VALUE", b"value of ")) or not line
            assert replies.count(b"END") >= list(mine.values()).count(False)
        fake.behave("good")
        key = next(key for key in KEYS if mine[key])
        wait_for(lambda: raw.memcache(b"get %b\r\n" % key).startswith(b"VALUE"), "the node is back")


class Liar:
    """A memcached that answers well-formed things to other questions."""

    garbage = surplus = b""
    greetings = MEMCACHE.greetings
    read = staticmethod(MEMCACHE.read)

    def __init__(self, wrong: Callable[[list[bytes]], bytes]) -> None:
        self.wrong = wrong
        self.lying = False

    def answer(self, request: list[bytes]) -> bytes:
        if self.lying and request[0] != b"version":
            return self.wrong(request)
        return MEMCACHE.answer(request)


@pytest.mark.parametrize(
    ("request_", "wrong"),
    [
        (b"get k\r\n", b"VALUE j 0 1\r\nx\r\nEND\r\n"),
        (b"get k\r\n", b"VALUE kk 0 1\r\nx\r\nEND\r\n"),
        (b"get k\r\n", b"VALUE k 0 1\r\nx\r\nVALUE k 0 1\r\nx\r\nEND\r\n"),
        (b"get k\r\n", b"STORED\r\n"),
        (b"get k\r\n", b"VA 1\r\nx\r\n"),
        (b"get k\r\n", b"STAT a 1\r\nEND\r\n"),
        (b"get k j\r\n", b"VALUE j 0 1\r\nx\r\nVALUE k 0 1\r\nx\r\nEND\r\n"),
        (b"set k 0 0 1\r\nx\r\n", b"END\r\n"),
        (b"set k 0 0 1\r\nx\r\n", b"DELETED\r\n"),
        (b"delete k\r\n", b"STORED\r\n"),
        (b"incr k 1\r\n", b"OK\r\n"),
        (b"touch k 1\r\n", b"5\r\n"),
        (b"mg k v\r\n", b"END\r\n"),
        (b"ms k 1\r\nx\r\n", b"STORED\r\n"),
        (b"flush_all\r\n", b"STORED\r\n"),
    ],
)
def test_an_answer_to_another_question_is_an_error_and_ends_the_connection(request_: bytes, wrong: bytes) -> None:
    liar = Liar(lambda request: wrong)
    speech: Speech = liar
    with FakeServer(speech) as fake, served([fake.address]) as (_, raw):
        assert raw.memcache(b"get k\r\n") == item(b"k", b"value of k") + b"END\r\n"
        liar.lying = True
        reply = raw.memcache(request_)
        assert reply.startswith(b"SERVER_ERROR instance 'mc' node 'n0 ("), reply
        assert b": its answer does not fit the request" in reply
        liar.lying = False
        wait_for(lambda: raw.memcache(b"get k\r\n").startswith(b"VALUE k "), "a new connection is made")
        assert fake.accepted == 2


@pytest.mark.parametrize(
    "banner", [b"VERSION 1.6.18\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"220 smtp\r\n"], ids=["answer", "http", "smtp"]
)
def test_a_server_that_speaks_unasked_never_comes_into_service(banner: bytes) -> None:
    with FakeServer(MEMCACHE, "double", banner=banner) as fake, served([fake.address]) as (_, raw):
        for _ in range(5):
            assert raw.memcache(b"get k\r\n").startswith(b"SERVER_ERROR ")


def test_noreply_requests_are_silent_and_in_order_and_their_errors_counted(worker: Worker) -> None:
    raw = Raw(worker.ports["mc"])
    before = worker.errors("mc").get("noreply", 0)
    requests = b"".join(
        b"set %b 0 0 1 noreply\r\n0\r\nincr %b 5 noreply\r\n" % (key, key)
        + b"append %b 0 0 1 noreply\r\nx\r\nincr %b 1 noreply\r\n" % (key, key)
        for key in KEYS
    )
    assert raw.memcache(requests + b"get %b\r\n" % b" ".join(KEYS)) == b"".join(
        b"VALUE %b 0 2\r\n5x\r\n" % key for key in KEYS
    ) + b"END\r\n"  # fmt: skip
    wait_for(lambda: worker.errors("mc").get("noreply", 0) == before + len(KEYS), "the errors are counted")
    raw.close()


def test_gets_and_cas_meet_the_same_server(worker: Worker) -> None:
    raw = Raw(worker.ports["mc"])
    fill(raw)
    items = raw.memcache(b"gets %b\r\n" % b" ".join(KEYS)).split(b"\r\n")
    tokens = {line.split()[1]: line.split()[4] for line in items if line.startswith(b"VALUE")}
    for key in KEYS:
        assert raw.memcache(b"cas %b 0 0 1 %b\r\ny\r\n" % (key, tokens[key])) == b"STORED\r\n"
        assert raw.memcache(b"cas %b 0 0 1 %b\r\nz\r\n" % (key, tokens[key])) == b"EXISTS\r\n"
    raw.close()


def test_a_value_over_the_limit_removes_the_old_one_as_memcached_does(worker: Worker) -> None:
    raw = Raw(worker.ports["mc"])
    large = b"x" * ((1 << 20) + 1)
    for line, key in [(b"set k 0 0 %d", b"k"), (b"set k 0 0 %d noreply", b"k"), (b"ms a2V5 %d b", b"key")]:
        raw.memcache(b"set %b 0 0 1\r\nx\r\n" % key)
        assert b"VALUE" in raw.memcache(b"get %b\r\n" % key)
        reply = raw.memcache(line % len(large) + b"\r\n" + large + b"\r\n")
        assert reply == (b"" if b"noreply" in line else b"SERVER_ERROR object too large for cache\r\n")
        assert raw.memcache(b"get %b\r\n" % key) == b"END\r\n"
    raw.memcache(b"set k 0 0 1\r\nx\r\n")
    assert raw.memcache(b"append k 0 0 %d\r\n%b\r\n" % (len(large), large)).startswith(b"SERVER_ERROR object too large")
    assert raw.memcache(b"get k\r\n") == b"VALUE k 0 1\r\nx\r\nEND\r\n"
    raw.close()


def test_a_line_without_end_is_answered_and_the_connection_closed(worker: Worker) -> None:
    with socket.create_connection(("127.0.0.1", worker.ports["mc"]), 10) as sock:
        sock.sendall(b"version\r\n" + b"get " + b"k" * (1 << 20))
        received = b""
        while data := sock.recv(65536):
            received += data
        assert received.startswith(b"VERSION 1.6.18-hyper_proxy-")
        assert received.endswith(b"CLIENT_ERROR line too long\r\n")


def test_a_binary_client_is_told_and_let_go(worker: Worker) -> None:
    with socket.create_connection(("127.0.0.1", worker.ports["mc"]), 10) as sock:
        sock.sendall(b"\x80\x0b" + bytes(22))
        received = b""
        while data := sock.recv(65536):
            received += data
    assert received.startswith(b"CLIENT_ERROR the binary protocol is not served: ")


def test_quit_answers_what_was_asked_before_it(worker: Worker) -> None:
    with socket.create_connection(("127.0.0.1", worker.ports["mc"]), 10) as sock:
        sock.sendall(b"get none\r\nquit\r\nget none\r\n")
        received = b""
        while data := sock.recv(65536):
            received += data
        assert received == b"END\r\n"


def test_a_long_line_in_small_packets(worker: Worker) -> None:
    raw = Raw(worker.ports["mc"])
    fill(raw)
    line = b"get %b\r\n" % b" ".join(KEYS * 200)
    for start in range(0, len(line), 700):
        raw.sock.sendall(line[start : start + 700])
    assert raw.memcache(b"") == b"".join(map(value, KEYS * 200)) + b"END\r\n"
    raw.close()


def stats_of(reply: bytes) -> dict[bytes, bytes]:
    rows = [line.split(b" ", 2) for line in reply.split(b"\r\n") if line.startswith(b"STAT")]
    return {name: value for _, name, value in rows}


def test_stats_are_those_of_the_proxy_and_the_sum_of_the_nodes(worker: Worker, memcached_nodes: list[Running]) -> None:
    raw = Raw(worker.ports["mc"])
    fill(raw)
    lines = stats_of(raw.memcache(b"stats\r\n"))
    nodes = [stats_of(node.ask(b"stats\r\n", b"END\r\n")) for node in memcached_nodes]
    for name in (b"curr_items", b"get_hits", b"cmd_set"):
        assert int(lines[name]) == sum(int(node[name]) for node in nodes) >= len(KEYS) * (name != b"get_hits")
    assert lines[b"version"].startswith(b"1.6.18-hyper_proxy-")
    assert int(lines[b"curr_connections"]) >= 1
    assert lines[b"proxy_nodes"] == b"3"
    assert lines[b"proxy_nodes_failed"] == b"0"
    for kind in (b"items", b"slabs", b"settings", b"sizes"):
        assert raw.memcache(b"stats %b\r\n" % kind).startswith(b"STAT ")
    assert raw.memcache(b"stats reset\r\n").startswith(b"CLIENT_ERROR stats reset is not served: ")
    raw.close()


@pytest.mark.parametrize(("limit", "listed"), [(0, 4), (1, 1), (3, 3), (9, 4)])
def test_the_keys_of_all_nodes_are_listed_up_to_the_limit(limit: int, listed: int) -> None:
    lines = b"ITEM k [1 b; 0 s]\r\nITEM j [1 b; 0 s]\r\nEND\r\n"
    liar = Liar(lambda request: lines)
    liar.lying = True
    with FakeServer(liar) as one, FakeServer(liar) as two, served([one.address, two.address]) as (_, raw):
        reply = raw.memcache(b"stats cachedump 1 %d\r\n" % limit)
        assert reply == (lines[:-5] * 2)[: listed * 19] + b"END\r\n"


def test_flush_all_only_where_it_is_allowed(memcached_nodes: list[Running]) -> None:
    addresses = [node.address for node in memcached_nodes]
    with Worker(instance("mc", addresses).replace('allow = ["flush_all"]', "")) as worker:
        raw = Raw(worker.ports["mc"])
        fill(raw)
        assert raw.memcache(b"flush_all\r\n") == b"CLIENT_ERROR flush_all not allowed\r\n"
        assert raw.memcache(b"flush_all noreply\r\n") == b""
        refused = b"CLIENT_ERROR cache_memlimit is not served: the instance's `allow` does not name it\r\n"
        assert raw.memcache(b"cache_memlimit 64\r\n") == refused
        assert raw.memcache(b"get %b\r\n" % KEYS[0]) == value(KEYS[0]) + b"END\r\n"
        raw.close()


def test_what_acts_on_one_server_is_refused(worker: Worker) -> None:
    raw = Raw(worker.ports["mc"])
    for name in (b"slabs", b"lru_crawler", b"watch", b"shutdown"):
        reply = raw.memcache(b"%b x\r\n" % name)
        assert reply == b"CLIENT_ERROR %b is not served: it acts on one server; connect to that server\r\n" % name
    raw.close()


def test_random_bytes_never_bring_a_server_out_of_step(worker: Worker) -> None:
    """A request with two answers, or none, would show as an error of the server, or as another client's wrong value."""
    raw = Raw(worker.ports["mc"])
    dice = random.Random(5)
    before = worker.errors("mc")
    for number in range(1500):
        with socket.create_connection(("127.0.0.1", worker.ports["mc"]), 10) as sock:
            sock.sendall(random_stream(dice).replace(b"flush_all", b"touch"))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass
        if number % 100 == 0:
            fill(raw)
            assert raw.memcache(b"get %b\r\n" % b" ".join(KEYS)) == b"".join(map(value, KEYS)) + b"END\r\n"
    raw.close()
    new = {kind for kind, count in worker.errors("mc").items() if count > before.get(kind, 0)}
    assert new <= {"client", "noreply", "client_lost"}
