"""How the access log is written: whole, in order, over reloads, in lines of any length, and to a disk that refuses."""

from __future__ import annotations

import socket

import pytest

from hyper_proxy.common.keyname import digest
from tests.fleet.records import MANY, MISS, Own, StartFleet, config, exchange, resp, sampled
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for


def test_no_request_of_many_clients_is_missing(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server, "redis", "text"))
    socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(10)]
    batch = b"".join(resp(b"GET", key) for key in MANY)
    rounds = 60
    for _ in range(rounds):
        for sock in socks:
            sock.sendall(batch)
        for sock in socks:
            exchange(sock, b"", MISS * len(MANY))
    for sock in socks:
        sock.close()
    count = rounds * len(socks) * len(MANY)
    wait_for(lambda: sum(record["requests"] for record in sampled(fleet)) >= count, "all requests are in the log")
    assert sum(record["requests"] for record in sampled(fleet)) == count
    assert {record["key"] for record in sampled(fleet)} <= {digest(key) for key in MANY}
    instance = fleet.stats()["instances"]["user"]
    assert (instance["unlogged"], fleet.stats()["workers"][0]["log_lost"]) == (0, 0)


def test_records_stand_before_what_happened_after_their_requests(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server, "redis", "text"))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for key in MANY[:7]:
            exchange(sock, resp(b"GET", key), MISS)
    fleet.stop()
    events = [line.split()[2] for line in fleet.read_log().splitlines()]
    assert events[: events.index("worker.ended")].count("request.sampled") == 7


def test_a_reload_changes_the_form_of_the_records(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server, "redis", "text"))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        exchange(sock, resp(b"GET", b"one"), MISS)
        fleet.write(config(port, server, "redis", "json").replace("[log]\n", '[log]\nlevel = "info"\n'))
        assert fleet.reload().accepted
        exchange(sock, resp(b"GET", b"two"), MISS)
        fleet.write(config(port, server, "redis", "json").replace("[log]\n", '[log]\nlevel = "warning"\n'))
        assert fleet.reload().accepted
        exchange(sock, resp(b"GET", b"three"), MISS)
        fleet.write(config(port, server, "redis", "json"))
        assert fleet.reload().accepted
        exchange(sock, resp(b"GET", b"four"), MISS)
    fleet.wait_log(digest(b"four"))
    assert [(record["key"], record["generation"]) for record in sampled(fleet)] == [
        (digest(b"one"), 1), (digest(b"two"), 2), (digest(b"four"), 4),
    ]  # fmt: skip
    lines = [line for line in fleet.read_log().splitlines() if "request.sampled" in line]
    assert [line[0] == "{" for line in lines] == [False, True, True]


def test_a_sampled_request_that_becomes_slow_while_its_answer_is_written(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server, "redis", "text", slow_ms=100))
    size = 32 << 20
    with socket.create_connection(("127.0.0.1", server.port)) as direct:
        exchange(direct, resp(b"SET", b"big", b"x" * size), b"+OK\r\n")
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(resp(b"GET", b"big"))
        wait_for(lambda: fleet.stats()["instances"]["user"]["bytes_out"] > 0, "the answer is begun")
        began = fleet.stats()["workers"][0]["uptime_s"]
        wait_for(lambda: fleet.stats()["workers"][0]["uptime_s"] > began + 0.3, "it waits")
        exchange(sock, b"", b"$%d\r\n%b\r\n" % (size, b"x" * size))
        exchange(sock, resp(b"GET", b"next"), MISS)
    fleet.wait_log(digest(b"next"))
    lines = [line for line in fleet.read_log().splitlines() if "request." in line]
    (line,) = [line for line in lines if "request.slow" in line]
    assert f"key={digest(b'big')} " in line
    assert "requests=1 " in line
    assert [record["key"] for record in sampled(fleet)] == [digest(b"next")]


@pytest.mark.parametrize("length", [60_000, 65_536, 200_000])
def test_a_record_is_as_long_as_its_server_s_name(start_fleet: StartFleet, own: Own, length: int) -> None:
    server, port, name = own(redis_server()), free_port(), "a" * length
    text = config(port, server, "redis", "json")
    fleet = start_fleet(text.replace(f"{server.address} a", f"{server.address} {name}"))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for key in MANY:
            exchange(sock, resp(b"GET", key), MISS)
    wait_for(lambda: len(sampled(fleet)) == len(MANY), "all requests are in the log")
    assert [record["key"] for record in sampled(fleet)] == [digest(key) for key in MANY]
    assert {record["node"] for record in sampled(fleet)} == {name}


def test_what_the_disk_refuses_is_counted_and_delays_nobody(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server, "redis", "text").replace("[log]\n", '[log]\nfile = "/dev/full"\n'))
    lost = lambda: fleet.stats()["workers"][0]["log_lost"]  # noqa: E731
    before = lost()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for key in MANY:
            exchange(sock, resp(b"GET", key), MISS)
    wait_for(lambda: lost() >= before + len(MANY), "all of them are counted as lost")
