"""More data than memory: a worker takes in less, loses nobody who behaves, and is well again when it is over."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

import psutil
import pytest
import redis
from pymemcache.client.base import Client as Memcache
from pymemcache.exceptions import MemcacheServerError

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
max_memory = "{limit}MB"
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [instance.limits]
  write_timeout_ms = {write_ms}
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:{node} a"]
  timeout = {{ read_ms = 10000, queue_ms = 10000 }}
[[instance]]
name = "cache"
protocol = "memcache"
listen = ["127.0.0.1:{cache}"]
  [[instance.level]]
  storage = "memcache"
  servers = ["127.0.0.1:{memcached} a"]
  timeout = {{ read_ms = 10000 }}
"""
LIMIT_MB = 256
BIG = bytes(range(256)) * 4096 * 10  # 10 MB
REPLY = b"$%d\r\n%b\r\n" % (len(BIG), BIG)
GET = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n"
DROPPED = b"-ERR the reply is dropped: the proxy has no memory for it ([proxy] max_memory)\r\n"
READERS = 100


class Served:
    """A fleet of one worker, and how much memory that has."""

    def __init__(self, fleet: Fleet, port: int, cache: int) -> None:
        self.fleet, self.port, self.cache = fleet, port, cache
        self.worker = psutil.Process(fleet.worker_pids()[0])
        self.most = 0

    @property
    def rss_mb(self) -> int:
        """Of now; the most that was seen is kept."""
        rss = self.worker.memory_info().rss >> 20
        self.most = max(self.most, rss)
        return rss

    @property
    def figures(self) -> dict[str, int]:
        """What /stats says of the worker."""
        figures: dict[str, int] = self.fleet.stats()["workers"][0]
        return figures

    def connect(self, port: int = 0) -> socket.socket:
        """A client with a small receive buffer, of redis if no port is given."""
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.settimeout(30)
        sock.connect(("127.0.0.1", port or self.port))
        return sock


@pytest.fixture
def serve(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], memcached_nodes: list[Running]
) -> Callable[..., Served]:
    def start(write_ms: int = 60_000, limit: int = LIMIT_MB) -> Served:
        port, cache = free_port(), free_port()
        servers = {"node": redis_nodes[0].port, "memcached": memcached_nodes[0].port}
        text = CONFIG.format(limit=limit, port=port, cache=cache, write_ms=write_ms, **servers)
        return Served(start_fleet(text), port, cache)

    return start


def read_all(sock: socket.socket, size: int) -> bytes:
    """Exactly so many bytes."""
    parts = bytearray()
    while len(parts) < size and (part := sock.recv(1 << 20)):
        parts += part
    return bytes(parts)


def is_refused(served: Served) -> bool:
    """Is a client that comes now told to go?"""
    with served.connect() as late:
        late.sendall(b"*1\r\n$4\r\nPING\r\n")
        try:
            answer = late.recv(100)
        except ConnectionResetError:  # it was closed before the PING came
            return True
    assert answer in (b"+PONG\r\n", b"-ERR max number of clients reached\r\n")
    return answer.startswith(b"-")


def fetches(get: Callable[[], object], expected: object) -> bool:
    """Is it answered, and right? False: there is no memory for it yet."""
    try:
        assert get() == expected
    except (redis.ResponseError, MemcacheServerError):
        return False
    return True


def test_a_hundred_slow_readers_cost_no_more_than_the_limit(serve: Callable[..., Served]) -> None:
    served = serve()
    client = redis.Redis(port=served.port, protocol=2, socket_timeout=30)
    client.set("big", BIG)
    client.set("small", "v")
    with ExitStack() as crowd:
        readers = [crowd.enter_context(served.connect()) for _ in range(READERS)]
        for reader in readers:
            reader.sendall(GET)
        wait_for(lambda: served.rss_mb and served.figures["replies_dropped"] > READERS // 2, "replies are dropped", 30)
        assert client.get("small") == b"v"  # behind all of them
        whole = 0
        for reader in readers:
            begin = reader.recv(len(DROPPED), socket.MSG_WAITALL)
            if begin == DROPPED:
                reader.sendall(b"*1\r\n$4\r\nPING\r\n")  # it goes on
                assert reader.recv(100) == b"+PONG\r\n"
            elif whole < 5:
                whole += 1
                assert begin + read_all(reader, len(REPLY) - len(begin)) == REPLY
            else:
                assert REPLY.startswith(begin)
                reader.close()
            assert served.rss_mb < LIMIT_MB + 100
        assert whole == 5
        wait_for(lambda: fetches(lambda: client.get("big"), BIG), "memory is given back")
        with served.connect() as late:
            late.sendall(GET)
            assert read_all(late, len(REPLY)) == REPLY
    assert served.most > LIMIT_MB - 50
    assert served.fleet.read_log().count("memory.short") == 1
    assert served.figures["memory_shortages"] >= 1
    assert served.figures["restarts"] == 0


def test_a_silent_reader_is_cut_and_its_memory_comes_back(serve: Callable[..., Served]) -> None:
    served = serve(write_ms=500, limit=1024)
    client = redis.Redis(port=served.port, protocol=2, socket_timeout=30)
    client.set("big", BIG)
    before = served.rss_mb
    with ExitStack() as crowd:
        for _ in range(20):
            crowd.enter_context(served.connect()).sendall(GET)
        wait_for(lambda: served.rss_mb > before + 60, "their replies are there")
        wait_for(lambda: served.fleet.stats()["instances"]["user"]["clients"] == 1, "they are cut")
    assert served.fleet.stats()["instances"]["user"]["errors"] == {"client_lost": 20}
    assert client.get("big") == BIG


def test_a_slow_but_steady_reader_is_not_cut(serve: Callable[..., Served]) -> None:
    """It takes less in the deadline than makes the kernel ask for more: a third of four megabytes."""
    served = serve(write_ms=300)
    redis.Redis(port=served.port, protocol=2).set("big", BIG)
    pace = threading.Event()
    got = bytearray()
    with served.connect() as reader:
        reader.sendall(GET)
        while len(got) < len(REPLY) and (part := reader.recv(100_000)):
            got += part
            pace.wait(0.04)
    assert got == REPLY


def test_a_reload_changes_the_limit(serve: Callable[..., Served]) -> None:
    served = serve()
    assert served.figures["memory_limit_bytes"] == LIMIT_MB << 20
    text = served.fleet.file.read_text()
    served.fleet.write(text.replace(f'max_memory = "{LIMIT_MB}MB"', 'max_memory = "1GB"'))
    assert served.fleet.reload().accepted
    assert served.figures["memory_limit_bytes"] == 1 << 30


def test_large_requests_come_one_after_the_other(serve: Callable[..., Served]) -> None:
    """Forty clients send ten megabytes each at once: there is room for less than half of that."""
    served = serve()
    answers: list[bool] = []
    clients = [redis.Redis(port=served.port, protocol=2, socket_timeout=60) for _ in range(40)]
    for client in clients:
        client.ping()
    writers = [
        threading.Thread(target=lambda client: answers.append(client.set("big", BIG)), args=(client,), daemon=True)
        for client in clients
    ]
    for writer in writers:
        writer.start()
    wait_for(lambda: is_refused(served), "a new client is refused", 30)
    wait_for(lambda: served.rss_mb < LIMIT_MB + 100 and len(answers) == len(writers), "all are answered", 60)
    assert answers == [True] * len(writers)
    assert LIMIT_MB - 50 < served.most < LIMIT_MB + 150  # all of it would be 400 MB more than a worker has idle
    assert served.figures["memory_shortages"] >= 1
    wait_for(lambda: not is_refused(served), "memory is given back")


def test_memcache_clients_read_a_servers_error(serve: Callable[..., Served]) -> None:
    served = serve()
    client = Memcache(("127.0.0.1", served.cache), timeout=30)
    values = {f"k{number}": b"x" * 1_000_000 for number in range(10)}
    for key, value in values.items():
        client.set(key, value, noreply=False)
    with ExitStack() as crowd:
        for _ in range(READERS):
            crowd.enter_context(served.connect(served.cache)).sendall(b"get %b\r\n" % " ".join(values).encode())
        wait_for(lambda: served.figures["replies_dropped"] > READERS // 4, "replies are dropped", 30)
        with pytest.raises(MemcacheServerError, match="out of memory: the reply is dropped"):
            client.get_many(list(values))
    wait_for(lambda: fetches(lambda: client.get_many(list(values)), values), "memory is given back")


def test_requests_that_never_come_do_not_lock_others_out(serve: Callable[..., Served]) -> None:
    """Eighty clients begin to send 500 MB each, stop after some, and stay; one goes on all the while, slowly."""
    served = serve()
    half = b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n" + bytes(5_000_000)
    over = threading.Event()

    def drip(sock: socket.socket) -> None:
        while not over.wait(0.3):
            sock.sendall(bytes(100))

    with ExitStack() as crowd:
        steady = crowd.enter_context(served.connect())
        steady.sendall(half % 6_000_000)
        dripping = threading.Thread(target=drip, args=(steady,), daemon=True)
        dripping.start()
        crowd.callback(over.set)
        for _ in range(80):
            sock = crowd.enter_context(served.connect())
            sock.settimeout(0.2)  # when it is not read from any more, it has sent enough
            with suppress(TimeoutError, OSError):
                sock.sendall(half % 500_000_000)
        assert is_refused(served)
        wait_for(lambda: not is_refused(served), "new clients are served again", 40)
        assert redis.Redis(port=served.port, protocol=2).set("small", "v")
        assert dripping.is_alive()
        over.set()
        dripping.join()
    served.fleet.wait_log("client.stalled")
