"""The access log: with log.access_sample = 1 every request of redis and memcache clients is in exactly one record."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hyper_proxy.common.keyname import digest, readable
from tests.fleet.records import CONFIG, MANY, MISS, PHASES, SERVERS, Own, StartFleet, config, exchange, resp, sampled
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import memcached, redis_server
from tests.kit.wait import wait_for

Case = tuple[bytes, bytes | None, tuple[str, int, int, bytes | None, str] | None]

# What is sent at once, the answer to it, and what the record says: command, requests, keys, first key, error.
CASES: dict[str, list[Case]] = {
    "redis": [
        (resp(b"SET", b"k", b"v" * 100), b"+OK\r\n", ("set", 1, 1, b"k", "")),
        (resp(b"GET", b"k"), b"$100\r\n" + b"v" * 100 + b"\r\n", ("get", 1, 1, b"k", "")),
        (resp(b"get", b"a b\xff\n\""), MISS, ("get", 1, 1, b"a b\xff\n\"", "")),
        (resp(b"GET", b"x" * 300), MISS, ("get", 1, 1, b"x" * 300, "")),
        (resp(b"MGET", *MANY), b"*40\r\n" + MISS * 40, ("mget", 1, 40, MANY[0], "")),
        (resp(b"MSET", b"m", b"1", b"n", b"2"), b"+OK\r\n", ("mset", 1, 2, b"m", "")),
        (b"\r\n" + resp(b"DEL", b"m", b"n"), b":2\r\n", ("del", 1, 2, b"m", "")),
        (resp(b"INCR", b"k"), b"-ERR value is not an integer or out of range\r\n", ("incr", 1, 1, b"k", "reply")),
        (b"".join(resp(b"GET", key) for key in MANY[:4]), MISS * 4, ("get", 4, 1, MANY[0], "")),
        (resp(b"EXISTS", b"k") + resp(b"PING") + resp(b"GET", b"q"), b":1\r\n+PONG\r\n" + MISS, None),
        (resp(b"PING"), b"+PONG\r\n", ("ping", 1, 0, None, "")),
        (resp(b"GET"), b"-ERR wrong number of arguments for 'get' command\r\n", ("get", 1, 0, None, "reply")),
        (b"GET\r\n", b"-ERR wrong number of arguments for 'get' command\r\n", ("get", 1, 0, None, "reply")),
        (resp(b"BOGUS", b"k"), b"-ERR unknown command 'BOGUS', with args beginning with: 'k' \r\n",
         ("", 1, 0, None, "reply")),
        (resp(b"MONITOR"), None, ("monitor", 1, 0, None, "reply")),
        (resp(b"SET", b"large", b"v" * 100_000), b"+OK\r\n", ("set", 1, 1, b"large", "")),
        (b"mset  hset 1 get 22\r\n", b"+OK\r\n", ("mset", 1, 2, b"hset", "")),  # as words it has other places
        (b"mget aaahset b c d e f\r\n", b"*6\r\n" + MISS * 6, ("mget", 1, 6, b"aaahset", "")),
        (b"del hset get\r\n", b":2\r\n", ("del", 1, 2, b"hset", "")),
        (resp(b"QUIT"), b"+OK\r\n", ("quit", 1, 0, None, "")),
    ],
    "memcache": [
        (b"set k 0 0 3\r\nabc\r\n", b"STORED\r\n", ("set", 1, 1, b"k", "")),
        (b"get k\r\n", b"VALUE k 0 3\r\nabc\r\nEND\r\n", ("get", 1, 1, b"k", "")),
        (b"get  " + b" ".join(MANY) + b"\r\n", b"END\r\n", ("get", 1, 40, MANY[0], "")),
        (b"incr k 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
         ("incr", 1, 1, b"k", "reply")),
        (b"mg k v\r\n", b"VA 3\r\nabc\r\n", ("mg", 1, 1, b"k", "")),
        (b"get a\r\nget b\r\ngets c\r\n", b"END\r\n" * 3, ("get", 3, 1, b"a", "")),
        (b"delete k\r\n", b"DELETED\r\n", ("delete", 1, 1, b"k", "")),
        (b"version\r\n", None, ("version", 1, 0, None, "")),
        (b"get\r\n", b"ERROR\r\n", ("get", 1, 0, None, "reply")),
        (b"set k 0 0\r\n", b"ERROR\r\n", ("set", 1, 0, None, "reply")),
        (b"get " + b"x" * 251 + b"\r\n", b"CLIENT_ERROR bad command line format\r\n", ("get", 1, 0, None, "reply")),
        (b"BOGUS k\r\n", b"ERROR\r\n", ("", 1, 0, None, "reply")),
        (b"slabs x\r\n", None, ("slabs", 1, 0, None, "reply")),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("show_keys", "plain"), [(False, ""), (True, ""), (False, "1"), (True, "1")])
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("protocol", ["redis", "memcache"])
def test_each_request_is_in_one_record_that_is_right(
    own: Own, tmp_path: Path, protocol: str, form: str, show_keys: bool, plain: str
) -> None:
    server, port = own(SERVERS[protocol]()), free_port()
    text = config(port, server, protocol, form)
    with Fleet(text, tmp_path, {"HYPER_PROXY_PLAIN": plain}) as fleet:
        check_cases(fleet, text, port, CASES[protocol], show_keys)


def check_cases(fleet: Fleet, text: str, port: int, cases: list[Case], show_keys: bool) -> None:
    if show_keys:
        fleet.write(f'{text}[admin]\nlisten = "127.0.0.1:{fleet.admin_port}"\nshow_keys = true\n')
        assert fleet.reload().accepted
    name = readable if show_keys else digest
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sizes = [exchange(sock, request, answer) for request, answer, _ in cases]
        client = "{}:{}".format(*sock.getsockname())
    bytes_in = sum(len(request) for request, _, _ in cases)
    wait_for(lambda: sum(record["bytes_in"] for record in sampled(fleet)) == bytes_in, "all requests are in the log")
    records = sampled(fleet)
    for (request, _, said), size in zip(cases, sizes, strict=True):
        if said is None:  # answered in parts
            left = len(request)
            while left > 0:
                left -= records.pop(0)["bytes_in"]
            continue
        record = records.pop(0)
        command, requests, keys, key, error = said
        assert (record["command"], record["requests"], record["keys"]) == (command, requests, keys)
        assert record["key"] == ("" if key is None else name(key))
        assert (record["bytes_in"], record["bytes_out"], record["error"]) == (len(request), size, error)
        assert record["node"] == ("a" if keys else "")
        assert (record["client"], record["instance"], record["slot"]) == (client, "user", 0)
        assert sum(record[phase] for phase in PHASES) == pytest.approx(record["total_us"], abs=10)
        assert record["storage_us"] > 0 or not keys
    assert records == []


@pytest.mark.parametrize(
    ("protocol", "good", "bad", "command"),
    [
        ("redis", resp(b"GET", b"k"), b"*2\r\n$3\r\nGET\r\n!k\r\n", ""),
        ("redis", b"", b"*1\r\n$x\r\n", ""),
        ("redis", resp(b"GET", b"k"), b'Set "a\r\n', "set"),
        ("memcache", b"get k\r\n", b"get " + b"x" * 3000, "get"),
        ("memcache", b"", b"get " + b"x" * 3000, "get"),
    ],
)
def test_what_is_no_request_of_the_protocol_is_a_record_of_its_own(
    start_fleet: StartFleet, own: Own, protocol: str, good: bytes, bad: bytes, command: str
) -> None:
    server, port = own(SERVERS[protocol]()), free_port()
    fleet = start_fleet(f"{config(port, server, protocol, 'json')}  [instance.limits]\n  max_line_bytes = 2048\n")
    with socket.create_connection(("127.0.0.1", port)) as sock:
        if good:
            exchange(sock, good, None)
        sock.sendall(bad)
        answer = b"".join(iter(lambda: sock.recv(1000), b""))
    assert answer.startswith((b"-ERR Protocol error", b"CLIENT_ERROR line too long"))
    wait_for(lambda: len(sampled(fleet)) == 1 + bool(good), "both are in the log")
    record = sampled(fleet)[-1]
    assert (record["command"], record["requests"], record["keys"], record["key"]) == (command, 1, 0, "")
    assert (record["bytes_in"], record["bytes_out"], record["error"]) == (len(bad), len(answer), "reply")
    counts = fleet.stats()["instances"]["user"]
    assert (counts["requests"]["admin"], counts["errors"]) == (1, {"client": 1})


@pytest.mark.parametrize(
    ("protocol", "begun", "command"),
    [
        ("redis", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$900000\r\n", "set"),
        ("redis", b"*3\r\n$5\r\nBogus\r\n$900000\r\n", ""),
        ("redis", b"*1\r\n$900000\r\n", ""),
        ("redis", b"MGET ", "mget"),
        ("memcache", b"set k 0 0 900000\r\n", "set"),
        ("memcache", b"get ", "get"),
        ("memcache", b"", ""),
    ],
)
def test_a_request_that_grows_beyond_its_limit_is_a_record_and_counted(
    start_fleet: StartFleet, own: Own, protocol: str, begun: bytes, command: str
) -> None:
    server, port = own(SERVERS[protocol]()), free_port()
    limits = 'max_request_bytes = "64KB"\n  max_line_bytes = "1MB"\n'
    fleet = start_fleet(f"{config(port, server, protocol, 'json')}  [instance.limits]\n  {limits}")
    good = resp(b"GET", b"k") if protocol == "redis" else b"get k\r\n"
    with socket.create_connection(("127.0.0.1", port)) as sock:
        exchange(sock, good, None)
        sock.sendall(begun.ljust(65_537, b"x"))
        answer = b"".join(iter(lambda: sock.recv(1000), b""))
    text = b"the request is longer than limits.max_request_bytes (65536)\r\n"
    assert answer == (b"-ERR " if protocol == "redis" else b"CLIENT_ERROR ") + text
    wait_for(lambda: len(sampled(fleet)) == 2, "both are in the log")
    record = sampled(fleet)[-1]
    assert (record["command"], record["requests"], record["keys"], record["key"]) == (command, 1, 0, "")
    assert (record["bytes_in"], record["bytes_out"], record["error"]) == (65_537, len(answer), "reply")
    counts = fleet.stats()["instances"]["user"]
    assert counts["requests"] == {"read": 1, "idempotent": 0, "write": 0, "admin": 1}
    assert counts["errors"] == {"client": 1}


def test_a_request_that_wants_no_answer_is_in_a_record_of_its_own(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(memcached()), free_port()
    fleet = start_fleet(config(port, server, "memcache", "json"))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(b"set k 0 0 1 noreply\r\nx\r\n")
        wait_for(lambda: len(sampled(fleet)) == 1, "the first is in the log")
        sock.sendall(b"verbosity 1 noreply\r\n")
        wait_for(lambda: len(sampled(fleet)) == 2, "the second is in the log")
        exchange(sock, b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n")
    wait_for(lambda: len(sampled(fleet)) == 3, "all are in the log")
    records = [(record["command"], record["requests"], record["bytes_in"]) for record in sampled(fleet)]
    assert records == [("set", 1, 24), ("verbosity", 1, 21), ("get", 1, 7)]


LEVELS = """
[[instance]]
name = "user"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "{above}"
  servers = ["{top} top"]
  [[instance.level]]
  storage = "redis"
  servers = ["{one} one", "{two} two"]
"""


@pytest.mark.parametrize("above", ["redis", "memcache"])
@pytest.mark.parametrize("protocol", ["redis", "memcache"])
def test_the_record_of_a_request_over_levels_names_the_server_that_answered_last(
    start_fleet: StartFleet, own: Own, protocol: str, above: str
) -> None:
    top, one, two, port = own(SERVERS[above]()), own(redis_server()), own(redis_server()), free_port()
    head = CONFIG[: CONFIG.index("[[instance]]")].format(form="json", slow_ms=0)
    addresses = {"top": top.address, "one": one.address, "two": two.address}
    fleet = start_fleet(head + LEVELS.format(protocol=protocol, port=port, above=above, **addresses))
    homes: dict[bytes, str] = {}
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for key in MANY[:12]:
            stored = resp(b"SET", key, b"1") if protocol == "redis" else b"set %b 0 0 1\r\n1\r\n" % key
            exchange(sock, stored, b"+OK\r\n" if protocol == "redis" else b"STORED\r\n")
            with socket.create_connection(("127.0.0.1", one.port)) as direct:
                direct.sendall(resp(b"EXISTS", key))
                homes[key] = "one" if direct.recv(100) == b":1\r\n" else "two"
            exchange(sock, resp(b"GET", key) if protocol == "redis" else b"get %b\r\n" % key, None)
    assert set(homes.values()) == {"one", "two"}
    wait_for(lambda: len(sampled(fleet)) == 2 * len(homes), "all requests are in the log")
    for key, home in homes.items():
        write, read = (record for record in sampled(fleet) if record["key"] == digest(key))
        assert (write["node"], write["command"]) == (home, "set")
        assert (read["node"], read["command"]) == (home, "get")
        for record in (write, read):
            assert sum(record[phase] for phase in PHASES) == pytest.approx(record["total_us"], abs=10)
            assert record["storage_us"] > 0


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_the_record_of_a_request_that_failed_in_part_names_the_server_that_failed(
    start_fleet: StartFleet, own: Own, killed: int
) -> None:
    servers, port = [own(redis_server()) for _ in range(3)], free_port()
    names = ", ".join(f'"{server.address} {name}"' for server, name in zip(servers, "abc", strict=True))
    text = config(port, servers[0], "redis", "json").replace(f'"{servers[0].address} a"', names)
    fleet = start_fleet(f'{text}  hash = "md5"\n')
    with socket.create_connection(("127.0.0.1", port)) as sock:
        exchange(sock, resp(b"MGET", *MANY), b"*40\r\n" + MISS * 40)
        servers[killed].stop()
        for _ in range(3):  # refused, and in the pause behind that
            exchange(sock, resp(b"MGET", *MANY), None)
    wait_for(lambda: len(sampled(fleet)) == 4, "all requests are in the log")
    failed = sampled(fleet)[1:]
    assert {record["node"] for record in failed} == {"abc"[killed]}
    assert {record["error"] for record in failed} <= {"refused", "backoff", "reset"}


def test_the_parts_of_a_pipeline_are_records_with_keys_of_their_own(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(config(port, server, "redis", "text"))
    keys = [b"k" * size for size in range(1, 201)]
    with socket.create_connection(("127.0.0.1", port)) as sock:
        exchange(sock, b"".join(resp(b"GET", key) for key in keys), MISS * len(keys))
    wait_for(lambda: sum(record["requests"] for record in sampled(fleet)) >= len(keys), "all requests are in the log")
    for record in sampled(fleet):
        assert record["key"] == digest(keys[0])
        assert record["bytes_in"] == sum(len(resp(b"GET", key)) for key in keys[: record["requests"]])
        del keys[: record["requests"]]
    assert keys == []
