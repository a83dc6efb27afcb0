"""A reply that the proxy has no memory for is no failure of the server, whoever asked for it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from http.client import HTTPConnection

import pytest

from tests.kit.fleet import Fleet
from tests.kit.http import Answer, ask
from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
max_memory = "128MB"
[[instance]]
name = "web"
protocol = "http"
listen = ["127.0.0.1:%d"]
  [instance.limits]
  max_value_bytes = "500MB"
"""
LEVEL = """  [[instance.level]]
  storage = "%s"
  servers = ["%s"]
"""
VALUE = b"x" * 900_000
GREEDY = b"PUT /v1/web/other HTTP/1.1\r\nHost: x\r\nContent-Length: 400000000\r\n\r\n" + bytes(150_000_000)


@pytest.mark.parametrize("storages", [["redis"], ["memcache"], ["redis", "sqlite"], ["memcache", "sqlite"]])
def test_a_reply_without_memory_is_no_fault_of_the_server(
    start_fleet: Callable[[str], Fleet], redis_nodes: list[Running], memcached_nodes: list[Running], storages: list[str]
) -> None:
    port = free_port()
    servers = {
        "redis": f"{redis_nodes[0].address} a", "memcache": f"{memcached_nodes[0].address} a", "sqlite": "keys.db",
    }  # fmt: skip
    levels = "".join(LEVEL % (storage, servers[storage]) for storage in storages)
    fleet = start_fleet(CONFIG % port + levels)
    with ExitStack() as stack:
        client = stack.enter_context(closing(HTTPConnection("127.0.0.1", port, timeout=20)))
        assert ask(client, "PUT", "/v1/web/big", VALUE, {}).status == 201
        greedy = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
        greedy.sendall(GREEDY)
        wait_for(lambda: fleet.stats()["workers"][0]["memory_shortages"], "memory is short")

        answers: list[Answer] = []

        def dropped() -> bool:
            answers.append(ask(client, "GET", "/v1/web/big", None, {}))
            return bool(fleet.stats()["workers"][0]["replies_dropped"])

        wait_for(dropped, "a reply is dropped")
        if len(storages) == 1:
            assert (answers[-1].status, answers[-1].code) == (503, "storage_memory")
        nodes = fleet.stats()["instances"]["web"]["nodes"]
        assert [node["errors"] for node in nodes.values()] == [{}] * len(nodes)
