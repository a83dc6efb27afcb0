"""What operators order of a running fleet: who feels it, who does not, and how long it lasts."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

SLOW_MS = 8000  # longer than any wait here
DRAINED = "drained by an operator"
MAINTENANCE = "taken into maintenance by an operator"


class Shop:
    """A fleet before two redis-servers, "a" and "b", which it may freeze; one key of each."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.servers = {"a": redis_server(), "b": redis_server()}
        self.port = free_port()
        self.path = folder / "shop.sock"
        servers = ", ".join(f'"{server.address}:1 {name}"' for name, server in self.servers.items())
        self.config = f"""[proxy]
workers = {workers}
drain_timeout_s = 1

[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{self.port}", "unix:{self.path}"]
  [[instance.level]]
  storage = "redis"
  distribution = "modula"
  servers = [{servers}]
  timeout = {{ read_ms = {SLOW_MS} }}
"""
        self.fleet = Fleet(self.config, folder)
        for slot in range(workers):
            self.fleet.wait_log(f"worker.ready slot={slot} ")
        self.keys = {name: self._key_of(server) for name, server in self.servers.items()}

    def _key_of(self, server: Running) -> str:
        with self.client() as client, redis.Redis(port=server.port) as direct:
            for number in range(20):
                client.set(f"k{number}", "")
            key = direct.randomkey()
            assert isinstance(key, bytes)
            client.delete(*(f"k{number}" for number in range(20)))
        return key.decode()

    def client(self) -> redis.Redis:
        """A new connection, in the version of the protocol that `begin` speaks: it shares the lanes."""
        return redis.Redis(port=self.port, socket_timeout=10, protocol=2)

    def ask(self, name: str) -> str:
        """What a new client reads for the key of this server: its value or the error."""
        with self.client() as client:
            try:
                return str(client.get(self.keys[name]))
            except redis.ResponseError as error:
                return str(error)

    def ask_all_workers(self, name: str) -> set[str]:
        """The same of as many clients as it takes to meet both workers."""
        return {self.ask(name) for _ in range(20)}

    def order(self, path: str, **body: object) -> dict[str, Any]:
        """POST; the answer."""
        status, answer = self.fleet.post(path, body)
        assert (status == 200) is answer["ok"], answer
        return answer

    def node(self, name: str, state: str) -> dict[str, Any]:
        """Orders a state of a server."""
        return self.order("/node", instance="shop", node=name, state=state)

    def get(self, path: str) -> dict[str, Any]:
        """GET; the answer."""
        answer: dict[str, Any] = json.loads(self.fleet.http("GET", path)[1])
        return answer

    def begin(self, name: str) -> socket.socket:
        """A request that is under way: its server is frozen."""
        assert self.ask_all_workers(name) == {"None"}, "both workers have a connection to it"
        self.servers[name].freeze()
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=SLOW_MS / 1000)
        sock.sendall(f"GET {self.keys[name]}\r\n".encode())
        wait_for(lambda: self.of_node(name)["in_flight"] == 1, "the request is under way")
        return sock

    def of_node(self, name: str) -> dict[str, Any]:
        """Its statistics."""
        row: dict[str, Any] = self.fleet.stats()["instances"]["shop"]["nodes"][name]
        return row

    def stop(self) -> None:
        """The servers too."""
        for server in self.servers.values():
            server.thaw()
        self.fleet.stop()
        for server in self.servers.values():
            server.stop()


StartShop = Callable[..., Shop]


@pytest.fixture
def start_shop(tmp_path: Path) -> Iterator[StartShop]:
    shops: list[Shop] = []

    def start(workers: int = 2) -> Shop:
        shops.append(Shop(tmp_path, workers))
        return shops[-1]

    yield start
    for shop in shops:
        shop.stop()


def test_a_drained_node_finishes_what_it_has_and_gets_nothing_new(start_shop: StartShop) -> None:
    shop = start_shop()
    with shop.begin("a") as waiting:
        assert shop.node("a", "drain")["summary"] == "node 'a' of instance 'shop' is drained"
        where = f"instance 'shop' node 'a (127.0.0.1:{shop.servers['a'].port})'"
        assert shop.ask_all_workers("a") == {f"{where}: {DRAINED}"}
        assert shop.ask("b") == "None", "the keys of others are served"
        shop.servers["a"].thaw()
        assert waiting.recv(100) == b"$-1\r\n", "what was under way is answered"
    wait_for(lambda: shop.of_node("a")["connections"] == 0, "its connections end")
    assert shop.of_node("a")["out_of_service"] == 2
    assert shop.of_node("a")["errors"]["drained"] >= 20
    assert shop.node("a", "ready")["ok"]
    assert shop.ask_all_workers("a") == {"None"}
    assert shop.of_node("a")["out_of_service"] == 0


def test_maintenance_cuts_what_is_under_way(start_shop: StartShop) -> None:
    shop = start_shop()
    with shop.begin("a") as waiting:
        shop.node("a", "maintenance")
        assert MAINTENANCE in waiting.recv(200).decode(), "at once: the server is still frozen"
        assert MAINTENANCE in shop.ask("a")
        assert shop.of_node("a")["connections"] == 0
        shop.servers["a"].thaw()
        assert MAINTENANCE in shop.ask("a"), "though the server is well"
        shop.node("a", "ready")
        assert shop.ask("a") == "None"


def test_a_client_that_waits_for_a_drained_node_is_told_why(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    with socket.create_connection(("127.0.0.1", shop.port), timeout=10) as sock:
        sock.sendall(f"BLPOP {shop.keys['a']} 0\r\n".encode())
        wait_for(lambda: shop.of_node("a")["in_flight"] == 1, "it waits")
        shop.node("a", "drain")
        assert DRAINED in sock.recv(200).decode()


def test_what_is_ordered_outlives_reloads_and_workers(start_shop: StartShop) -> None:
    shop = start_shop()
    shop.node("a", "drain")
    shop.fleet.write(shop.config.replace("drain_timeout_s = 1", "drain_timeout_s = 2"))
    assert shop.fleet.reload().accepted
    assert all(DRAINED in text for text in shop.ask_all_workers("a"))
    shop.fleet.write(shop.config.replace(f"{SLOW_MS}", "999"))  # every node is a new one
    assert shop.fleet.reload().accepted
    assert all(DRAINED in text for text in shop.ask_all_workers("a"))
    pid = shop.fleet.kill_worker(0)
    wait_for(lambda: _ready_pids(shop) - {pid} == _ready_pids(shop) and len(_ready_pids(shop)) == 2, "a new worker")
    assert all(DRAINED in text for text in shop.ask_all_workers("a"))
    (row,) = shop.get("/overrides")["overrides"]["nodes"]
    assert (row["instance"], row["node"], row["state"]) == ("shop", "a", "drained")
    assert row["who"].startswith("127.0.0.1 ")
    assert shop.get("/stats")["overrides"]["nodes"] == [row]
    assert shop.order("/overrides/clear")["overrides"] == {"drained": None, "log_level": None, "nodes": [], "rooms": []}
    assert shop.ask_all_workers("a") == {"None"}


def _ready_pids(shop: Shop) -> set[int]:
    return {worker["pid"] for worker in shop.fleet.stats()["workers"] if worker["state"] == "ready"}


def test_an_order_for_what_a_reload_took_away_can_be_taken_back(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    shop.node("b", "drain")
    only_a = shop.config.replace(f', "{shop.servers["b"].address}:1 b"', "")
    assert only_a != shop.config
    shop.fleet.write(only_a)
    assert shop.fleet.reload().accepted
    assert shop.ask("a") == shop.ask("b") == "None"
    shop.fleet.write(shop.config)
    assert shop.fleet.reload().accepted
    assert DRAINED in shop.ask("b"), "it came back as it was left"
    shop.fleet.write(only_a)
    assert shop.fleet.reload().accepted
    assert shop.node("b", "ready")["overrides"]["nodes"] == []


def test_orders_are_logged_with_who_gave_them_and_refused_with_what_there_is(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    shop.node("a", "drain")
    assert shop.fleet.log_contains('info operator.order verb=node who="127.0.0.1 ')
    assert shop.fleet.log_contains("instance=shop node=a state=drain")
    for words, error in (
        (("shop", "c", "drain"), "instance 'shop' has no node 'c': a, b"),
        (("shoe", "a", "drain"), "there is no instance 'shoe': shop"),
        (("shop", "a", "off"), "there is no state 'off' for a node: ready, drain, maintenance"),
    ):
        instance, node, state = words
        answer = shop.order("/node", instance=instance, node=node, state=state)
        assert (answer["ok"], answer["error"]) == (False, error)
        shop.fleet.wait_log(f'error="{error}"')
    assert shop.node(shop.servers["b"].address, "drain")["summary"].startswith("node 'b' "), "by address, too"


def test_a_drained_proxy_says_so_and_serves_on(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    assert shop.order("/drain")["master"]["state"] == "drained"
    shop.fleet.write(shop.config.replace("drain_timeout_s = 1", "drain_timeout_s = 2"))
    assert shop.fleet.reload().accepted
    status, body = shop.fleet.http("GET", "/health/ready")
    assert (status, b"drained by 127.0.0.1" in body) == (503, True)
    assert shop.fleet.http("GET", "/health/live")[0] == 200
    assert shop.ask("a") == "None", "new clients are served"
    assert shop.order("/undrain")["master"]["state"] == "running"
    assert shop.fleet.http("GET", "/health/ready")[0] == 200


def test_the_log_level_of_an_operator_holds_until_it_is_taken_back(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    assert shop.order("/log-level", level="debug")["summary"] == "the log level is debug"
    shop.fleet.write(shop.config + '[log]\nlevel = "error"\n')
    assert shop.fleet.reload().accepted
    shop.fleet.kill_worker(0)
    shop.fleet.wait_log("debug worker.born slot=0")
    assert shop.order("/log-level", level="loud")["error"] == "there is no level 'loud': debug, info, warning, error"
    wait_for(shop.fleet.is_ready, "the worker is back")
    assert shop.order("/log-level", level="")["summary"] == "the log level is error"
    before = shop.fleet.read_log().count("debug worker.born")
    shop.fleet.kill_worker(0)
    shop.fleet.wait_log("error worker.ended")
    wait_for(shop.fleet.is_ready, "the worker is back")
    assert shop.fleet.read_log().count("debug worker.born") == before


class Plain:
    """A client that does not connect a second time by itself."""

    def __init__(self, family: int, address: str | tuple[str, int]) -> None:
        self.sock = socket.socket(family)
        self.sock.settimeout(10)
        self.sock.connect(address)

    def is_served(self) -> bool:
        """Is it answered? False when the proxy has ended the connection."""
        try:
            self.sock.sendall(b"PING\r\n")
            return self.sock.recv(100) == b"+PONG\r\n"
        except ConnectionError:
            return False


def test_clients_are_listed_and_sent_away(start_shop: StartShop) -> None:
    shop = start_shop()
    one, other = (Plain(socket.AF_INET, ("127.0.0.1", shop.port)) for _ in range(2))
    local = Plain(socket.AF_UNIX, str(shop.path))
    with one.sock, other.sock, local.sock:
        assert all(client.is_served() for client in (one, other, local))
        answer = shop.get("/clients?limit=2")
        assert (answer["total"], len(answer["clients"])) == (3, 2)
        rows = shop.get("/clients")["clients"]
        assert [row["instance"] for row in rows] == ["shop"] * 3
        assert {row["listener"] for row in rows} == {f"127.0.0.1:{shop.port}", f"unix:{shop.path}"}
        assert all(row["bytes_in"] == len("PING\r\n") and row["idle"] for row in rows)
        mine = f"127.0.0.1:{one.sock.getsockname()[1]}"
        assert mine in {row["address"] for row in rows}
        assert shop.order("/disconnect", address=mine)["closed"] == 1
        assert not one.is_served()
        assert other.is_served()
        assert shop.order("/disconnect", address="127.0.0.1")["summary"] == "1 client disconnected"
        assert not other.is_served()
        unix = next(row for row in rows if row["address"].startswith("unix:"))
        assert "name the worker" in shop.order("/disconnect", address=unix["address"])["error"]
        assert local.is_served()
        assert shop.order("/disconnect", address=unix["address"], worker=unix["worker"])["closed"] == 1
        assert not local.is_served()
    assert shop.fleet.http("GET", "/clients?instance=shoe")[0] == 404
    assert shop.fleet.http("GET", "/clients?worker=7")[0] == 404
    assert shop.fleet.http("GET", "/clients?worker=x")[0] == 400


def test_listeners_and_stacks_are_shown(start_shop: StartShop) -> None:
    shop = start_shop()
    rows = shop.get("/listeners")["listeners"]
    tcp = [row for row in rows if row["address"] == f"127.0.0.1:{shop.port}"]
    assert [(row["worker"], row["queued"], row["instance"]) for row in tcp] == [(0, 0, "shop"), (1, 0, "shop")]
    assert all(row["backlog"] >= 128 for row in tcp)
    assert [row["worker"] for row in rows if row["address"].startswith("unix:")] == [None]
    answer = shop.get("/stack?worker=1")
    assert [row["worker"] for row in answer["stacks"]] == [1]
    text = answer["stacks"][0]["text"]
    assert "heartbeat.py" in text and "/workers/main.py" in text
    assert "/supervisor/" not in text  # the calls of the master in which it was forked are not its own


def test_the_number_of_workers_can_be_ordered(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    assert shop.order("/workers", change="+1")["summary"] == "one worker more"
    wait_for(lambda: len(_ready_pids(shop)) == 2, "a second worker")
    assert shop.ask_all_workers("a") == {"None"}
    assert shop.order("/workers", change="+3")["error"] == "there is no change '+3' of the workers: +1, -1"
    shop.order("/workers", change="-1")
    wait_for(lambda: len(shop.fleet.stats()["workers"]) == 1, "one worker")


def test_a_worker_is_replaced_without_a_failed_request(start_shop: StartShop) -> None:
    shop = start_shop()
    before = shop.fleet.worker_pids()
    with shop.client() as client:
        for slot in range(2):
            assert shop.order("/restart-worker", worker=slot)["ok"]
        while shop.fleet.stats()["leaving"] or _ready_pids(shop) & set(before):
            assert shop.ask("a") == "None"
        with suppress(redis.ConnectionError):  # between two requests its worker has let it go
            client.get("x")
    assert len(_ready_pids(shop)) == 2
    assert [row["restarts"] for row in shop.fleet.stats()["workers"]] == [0, 0], "nobody has died"
    for worker, error in (("7", "there is no worker 7"), ("", "there is no worker"), ("x", "'x' is not the number")):
        assert error in shop.order("/restart-worker", worker=worker)["error"]


def test_a_transaction_that_has_begun_is_finished(start_shop: StartShop) -> None:
    shop = start_shop(workers=1)
    with socket.create_connection(("127.0.0.1", shop.port), timeout=10) as sock:
        sock.sendall(f"MULTI\r\nSET {shop.keys['a']} 1\r\n".encode())
        answer = b""
        while not answer.endswith(b"+QUEUED\r\n"):
            answer += sock.recv(100)
        shop.node("a", "drain")
        assert DRAINED in shop.ask("a")
        sock.sendall(b"EXEC\r\n")
        assert sock.recv(100) == b"*1\r\n+OK\r\n"
        sock.sendall(f"GET {shop.keys['a']}\r\n".encode())
        assert DRAINED in sock.recv(200).decode(), "what comes after it is refused"
    wait_for(lambda: shop.of_node("a")["connections"] == 0, "its connection ends, too")


def test_a_memcached_can_be_drained_too(memcached_nodes: list[Running], start_fleet: Callable[[str], Fleet]) -> None:
    port = free_port()
    servers = ", ".join(f'"{node.address}:1 {name}"' for node, name in zip(memcached_nodes, "ab", strict=False))
    fleet = start_fleet(
        f"""[[instance]]
name = "cache"
protocol = "memcache"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "memcache"
  servers = [{servers}]
"""
    )
    assert fleet.post("/node", {"instance": "cache", "node": "a", "state": "drain"})[1]["ok"]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock, sock.makefile("rb") as answers:
        seen = set()
        for number in range(20):
            sock.sendall(f"set k{number} 0 0 1\r\n1\r\n".encode())
            seen.add(answers.readline())
    where = f"SERVER_ERROR instance 'cache' node 'a ({memcached_nodes[0].address})': {DRAINED}\r\n"
    assert seen == {b"STORED\r\n", where.encode()}


def test_a_worker_that_has_no_time_obeys_later_and_the_answer_says_so(start_shop: StartShop) -> None:
    shop = start_shop()
    pid = shop.fleet.kill_worker(0, signal.SIGSTOP)
    try:
        answer = shop.node("a", "drain")
        assert (answer["silent"], "; it reaches worker 0 when that has time" in answer["summary"]) == ([0], True)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: shop.of_node("a")["out_of_service"] == 2, "it has obeyed")
    assert all(DRAINED in text for text in shop.ask_all_workers("a"))
