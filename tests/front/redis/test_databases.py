"""SELECT of a database that a server does not have: its client is told, and nobody else notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for
from tests.protocol.raw import Raw

CONFIG = """
[proxy]
workers = 1
drain_timeout_s = 1
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{servers}]
  connections = 1
  {more}
"""
OUT_OF_RANGE = b"-ERR DB index is out of range\r\n"
StartFleet = Callable[[str], Fleet]
Own = Callable[[Running], Running]


def config(port: int, servers: list[Running], more: str = "") -> str:
    listed = ", ".join(f'"{server.address} {name}"' for server, name in zip(servers, "ab", strict=False))
    return CONFIG.format(port=port, servers=listed, more=more)


def instance(fleet: Fleet) -> dict[str, Any]:
    return dict(fleet.stats()["instances"]["user"])


def test_it_is_the_fault_of_its_client_alone(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server("--databases", "4")), free_port()
    fleet = start_fleet(config(port, [server], "db = 1\n  backoff = { base_ms = 50, max_ms = 100 }"))
    other, client = Raw(port), Raw(port)
    assert other.redis(b"SET", b"k", b"1") == b"+OK\r\n"
    connects = instance(fleet)["nodes"]["a"]["connects"]
    for _ in range(300):
        assert client.redis(b"SELECT", b"3") == OUT_OF_RANGE  # 4 of the server, with the level's own one
        assert client.redis(b"GET", b"k") == b"$1\r\n1\r\n"  # in the database that it had
        assert other.redis(b"GET", b"k") == b"$1\r\n1\r\n"
    assert client.redis(b"SELECT", b"2") == b"+OK\r\n"
    assert client.redis(b"GET", b"k") == b"$-1\r\n"
    now = instance(fleet)
    assert now["errors"] == {"client": 300}
    node = now["nodes"]["a"]
    assert (node["errors"], node["down"], node["connects"]) == ({}, 0, connects + 1)
    assert "node." not in fleet.read_log()


def test_of_several_servers_that_differ_the_one_is_named(start_fleet: StartFleet, own: Own) -> None:
    servers, port = [own(redis_server()), own(redis_server("--databases", "2"))], free_port()
    fleet = start_fleet(config(port, servers))
    client = Raw(port)
    assert client.redis(b"SELECT", b"7") == b"+OK\r\n"  # one of them has it
    replies = {client.redis(b"SET", b"key:%d" % number, b"1") for number in range(40)}
    said = (
        f"-ERR instance 'user' node 'b ({servers[1].address})': it does not take the database of this client: "
        "ERR DB index is out of range\r\n"
    )
    assert replies == {b"+OK\r\n", said.encode()}
    now = instance(fleet)
    assert set(now["errors"]) == {"client"}
    assert now["nodes"]["b"]["errors"] == {}
    assert "node." not in fleet.read_log()


def test_nor_does_it_hide_that_a_server_is_back(start_fleet: StartFleet, own: Own) -> None:
    """Its only connections were those to a database that it does not have when it comes back."""
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, [server], "backoff = { base_ms = 50, max_ms = 100 }"))
    client = Raw(port)
    assert client.redis(b"SELECT", b"7") == b"+OK\r\n"
    server.kill()
    wait_for(lambda: b"no connection" in client.redis(b"GET", b"a"), "it is noticed")
    fleet.wait_log("node.down")
    server.command += ["--databases", "2"]
    server.start()
    wait_for(lambda: client.redis(b"GET", b"a").endswith(OUT_OF_RANGE[1:]), "it is asked again")
    wait_for(lambda: fleet.log_contains("node.up"), "it is known to be well")


@pytest.mark.parametrize(
    ("options", "keys", "text"),
    [
        (("--requirepass", "secret"), "", "login failed: the server wants a password, and the level has none "
         "(`password`): NOAUTH Authentication required."),
        (("--requirepass", "secret"), 'password = "guess"', "login failed: the server refuses `password` of the level: "
         "WRONGPASS invalid username-password pair or user is disabled."),
        ((), 'password = "guess"', "login failed: the server wants no password, and the level has one (`password`): "
         "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
         "configuration is correct?"),
        ((), 'username = "ann"\n  password = "guess"', "login failed: the server refuses `username` or `password` of "
         "the level: WRONGPASS invalid username-password pair or user is disabled."),
        (("--databases", "4"), "db = 4", "greeting failed: the server does not take `db` of the level, SELECT 4: "
         "ERR DB index is out of range"),
        (("--rename-command", "AUTH", ""), 'password = "guess"', "greeting failed: AUTH was refused: "
         "ERR unknown command 'AUTH'"),
    ],
)  # fmt: skip
def test_a_server_that_does_not_let_the_level_in_says_why_and_which_key_it_is(
    start_fleet: StartFleet, own: Own, options: tuple[str, ...], keys: str, text: str
) -> None:
    server, port = own(redis_server(*options)), free_port()
    fleet = start_fleet(config(port, [server], keys))
    reply = Raw(port).redis(b"GET", b"a")
    assert reply == f"-ERR instance 'user' node 'a ({server.address})': {text}\r\n".encode()
    fleet.wait_log("node.down")
    assert text in fleet.read_log()
    assert "guess" not in fleet.read_log()
