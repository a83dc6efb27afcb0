"""hyper-proxy ctl before a real fleet: every verb, as text and as JSON, and what goes wrong."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from hyper_proxy import __version__
from hyper_proxy.cli import ctl_show
from hyper_proxy.cli.ctl_orders import ORDERS
from hyper_proxy.common.keyname import digest
from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

CTL = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl"]
SCREEN_LINES, SCREEN_COLUMNS = 50, 120


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """hyper-proxy ctl WORDS."""
    return subprocess.run(
        [*CTL, *words], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=30
    )


class Operated:
    """A fleet with one instance "shop" on two redis-servers "a" and "b", and an operator."""

    def __init__(self, nodes: list[Running], folder: Path, admin: str = "") -> None:
        self.port = free_port()
        servers = ", ".join(f'"{node.address}:1 {name}"' for node, name in zip(nodes, "ab", strict=False))
        self.fleet = Fleet(
            f"""[proxy]
workers = 2
drain_timeout_s = 1
{admin}
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:{self.port}"]
  [[instance.level]]
  storage = "redis"
  servers = [{servers}]
""",
            folder,
            ready=not admin,
        )
        for slot in range(2):
            self.fleet.wait_log(f"worker.ready slot={slot} ")

    def ctl(self, *words: str) -> str:
        """What a verb that succeeds prints."""
        done = run("-c", str(self.fleet.file), *words)
        assert done.returncode == 0, done
        return done.stdout

    def refused(self, *words: str) -> str:
        """What a verb that fails prints, to standard error, under the name of the fleet."""
        done = run("-c", str(self.fleet.file), *words)
        assert (done.returncode, done.stdout) == (1, ""), done
        return done.stderr.partition("\n")[2]


@pytest.fixture
def operated(redis_nodes: list[Running], tmp_path: Path) -> Iterator[Operated]:
    fresh = Operated(redis_nodes, tmp_path)
    yield fresh
    fresh.fleet.stop()


def rows(text: str) -> list[list[str]]:
    """The cells of a table, its head first."""
    return [line.split() for line in text.splitlines()]


def test_the_help_fits_on_a_screen_and_has_every_verb() -> None:
    done = run("--help")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= SCREEN_COLUMNS
    for name, order in ORDERS.items():
        assert any(line.startswith(f"  {name}") and order.help in line for line in lines), name


def test_what_is_shown_is_what_happened(operated: Operated) -> None:
    with redis.Redis(port=operated.port, protocol=2) as client:
        for number in range(50):
            client.set(f"k{number}", "v")
        head, *workers = rows(operated.ctl("show", "workers"))
        assert head[:4] == ["slot", "pid", "generation", "state"]
        assert [row[:4] for row in workers] == [
            [str(slot), str(pid), "1", "ready"] for slot, pid in enumerate(operated.fleet.worker_pids())
        ]
        instance = dict(zip(*rows(operated.ctl("show", "instances")), strict=True))
        assert (instance["instance"], instance["clients"], instance["nodes"]) == ("shop", "1", "2")
        assert 50 <= int(instance["requests"]) <= 54, "and what the client library asks when it connects"
        head, *nodes = rows(operated.ctl("show", "nodes", "shop"))
        assert [row[:3] for row in nodes] == [["shop", "a", "up"], ["shop", "b", "up"]]
        asked = [int(dict(zip(head, row, strict=True))["requests"]) for row in nodes]
        assert 50 <= sum(asked) <= 54
        head, mine = rows(operated.ctl("show", "clients"))
        row = dict(zip(head, mine, strict=True))
        assert row["address"].startswith("127.0.0.1:")
        assert (row["instance"], row["listener"], row["state"]) == ("shop", f"127.0.0.1:{operated.port}", "idle")
    _, *listeners = rows(operated.ctl("show", "listeners"))
    assert [row[:5] for row in listeners] == [
        ["shop", "redis", f"127.0.0.1:{operated.port}", str(slot), "0"] for slot in range(2)
    ]
    assert rows(operated.ctl("show", "memory"))[-1][0] == "all"
    assert operated.ctl("show", "version") == f"fleet {__version__}, this command {__version__}\n"
    assert json.loads(operated.ctl("show", "config"))["config"]["workers"] == 2
    assert "proxy.workers" in operated.ctl("show", "settings")
    assert "heartbeat.py" in operated.ctl("--worker", "1", "show", "stack")
    assert "master.started" in operated.ctl("show", "events")
    assert json.loads(operated.ctl("show", "stats", "shop", "a"))["instances"]["shop"]["nodes"].keys() == {"a"}


def test_settings_say_what_a_change_takes(operated: Operated) -> None:
    lines = operated.ctl("show", "settings").splitlines()
    takes = {line.split()[0]: line.rpartition("  ")[2].strip() for line in lines}
    assert (takes["proxy.workers"], takes["log.level"]) == ("new workers", "a reload")
    assert takes["proxy.pidfile"] == "a restart"


def test_every_question_can_be_asked_for_json(operated: Operated) -> None:
    for name, order in ORDERS.items():
        if order.method == "GET":
            assert isinstance(json.loads(operated.ctl("--json", *name.split())), dict), name


def test_a_node_goes_out_of_service_and_comes_back(operated: Operated) -> None:
    assert operated.ctl("show", "overrides") == "none: the configuration holds\n"
    assert operated.ctl("node", "drain", "shop", "a") == "node 'a' of instance 'shop' is drained\n"
    assert operated.ctl("node", "maintenance", "shop", "b") == "node 'b' of instance 'shop' is in maintenance\n"
    assert [row[2] for row in rows(operated.ctl("show", "nodes"))[1:]] == ["drained", "maintenance"]
    assert f"127.0.0.1 hyper-proxy ctl ({getpass.getuser()})" in operated.ctl("show", "overrides")
    with redis.Redis(port=operated.port) as client, pytest.raises(redis.ResponseError, match="by an operator"):
        client.get("x")
    assert operated.ctl("overrides", "clear") == "no override is left: the configuration holds\n"
    with redis.Redis(port=operated.port) as client:
        assert client.get("x") is None
    assert operated.refused("node", "drain", "shop", "c") == "instance 'shop' has no node 'c': a, b\n"
    assert operated.refused("node", "ready", "shoe", "a") == "there is no instance 'shoe': shop\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "nodes", "shoe"), "there is no instance 'shoe': shop\n"),
        (("show", "stats", "shop", "c"), "there is no node 'c': a, b\n"),
        (("--worker", "2", "show", "workers"), "there is no worker 2: 0, 1\n"),
    ],
)
def test_who_asks_for_what_is_not_there_reads_what_there_is(
    words: tuple[str, ...], said: str, operated: Operated
) -> None:
    done = run("-c", str(operated.fleet.file), *words)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_health_follows_drain_and_the_end(operated: Operated) -> None:
    assert operated.ctl("health") == operated.ctl("wait-ready") == "ready\n"
    assert operated.ctl("drain").startswith("drained: ")
    refused = run("-c", str(operated.fleet.file), "health").stderr
    assert "drained by 127.0.0.1" in refused and "`ctl undrain` or POST /undrain takes it back" in refused
    late = run("-c", str(operated.fleet.file), "--timeout", "0.3", "wait-ready")
    assert (late.returncode, "drained by" in late.stderr) == (1, True)
    assert json.loads(run("-c", str(operated.fleet.file), "--json", "health").stdout)["ready"] is False
    operated.ctl("undrain")
    assert operated.ctl("health") == "ready\n"
    assert operated.ctl("stop") == "the fleet is draining\n"
    assert operated.fleet.process.wait(10) == 0
    gone = run("-c", str(operated.fleet.file), "health")
    assert gone.returncode == 1
    assert "no fleet answers on 127.0.0.1:" in gone.stderr
    assert "Connection refused" in gone.stderr


def test_health_says_what_hurts_though_clients_may_come(
    own: Callable[[Running], Running], redis_nodes: list[Running], tmp_path: Path
) -> None:
    gone = own(redis_server())
    operated = Operated([redis_nodes[0], gone], tmp_path)
    try:
        assert operated.ctl("health") == "ready\n"
        gone.kill()
        with redis.Redis(port=operated.port, protocol=2) as client, pytest.raises(redis.ResponseError):
            for number in range(100):
                client.get(f"k{number}")
        wait_for(lambda: "server b of instance shop" in operated.ctl("health"), "health tells of the server", 10)
        first = operated.ctl("health").splitlines()[0]
        assert first.startswith("ready; serving"), first
    finally:
        operated.fleet.stop()


def test_an_order_stands_in_the_log_before_what_it_does(operated: Operated) -> None:
    operated.ctl("stop")
    assert operated.fleet.process.wait(10) == 0
    log = operated.fleet.read_log()
    assert 0 < log.index("operator.order verb=stop") < log.index("fleet.draining")
    operated_stop = next(line for line in log.splitlines() if "operator.order verb=stop" in line)
    assert "True" not in operated_stop
    assert "False" not in operated_stop


def test_wait_ready_waits_for_a_fleet_that_is_about_to_start(redis_nodes: list[Running], tmp_path: Path) -> None:
    fleet = Fleet(f'[[instance]]\nname = "shop"\nprotocol = "redis"\nlisten = ["127.0.0.1:{free_port()}"]\n'
                  f'  [[instance.level]]\n  storage = "redis"\n  servers = ["{redis_nodes[0].address}"]\n',
                  tmp_path, ready=False)  # fmt: skip
    try:
        done = run("-c", str(fleet.file), "--timeout", "25", "wait-ready")
        assert (done.returncode, done.stdout) == (0, "ready\n"), done
    finally:
        fleet.stop()


def test_clients_logs_and_the_level_of_the_log(operated: Operated) -> None:
    with redis.Redis(port=operated.port) as client:
        client.ping()
        assert operated.ctl("disconnect", "127.0.0.1") == "1 client disconnected\n"
        nobody = run("-c", str(operated.fleet.file), "disconnect", "192.0.2.1")
        assert (nobody.returncode, nobody.stdout) == (1, "0 clients disconnected\n"), "a slip is no success"
    assert operated.ctl("log-level", "debug") == "the log level is debug\n"
    assert operated.ctl("log-level") == "the log level is info\n"
    assert operated.refused("log-level", "loud") == "there is no level 'loud': debug, info, warning, error\n"
    assert operated.ctl("reopen-logs") == "the log files are opened anew\n"
    events = operated.ctl("show", "events")
    assert re.search(r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info operator\.order verb=disconnect ", events)
    assert all(f"operator.order verb={verb}" in events for verb in ("disconnect", "log_level", "reopen_logs"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("sho", "workers"), "there is no verb 'sho workers'; did you mean 'show workers'?"),
        (("show", "wrkers"), "'show' does not go on with 'wrkers'; did you mean 'workers'?"),
        (("node", "drian", "shop", "a"), "'node' does not go on with 'drian'; did you mean 'drain'?"),
        (("status",), "there is no verb 'status'; did you mean 'health'?\nhyper-proxy ctl --help lists them all\n"),
        (("quit",), "there is no verb 'quit'\nhyper-proxy ctl --help lists them all\n"),
        (("shop.toml", "show", "nodes"), "the file is named by -c: hyper-proxy ctl -c shop.toml show nodes"),
        (("node",), "'node' goes on:\n  node drain INSTANCE NODE\n  node maintenance INSTANCE NODE\n"),
        (("node", "undrain", "shop", "a"), "'node' goes on:\n  node drain INSTANCE NODE\n"),
        (("node", "xyz"), "'node' goes on:\n  node drain INSTANCE NODE\n"),
        (("node", "drain", "shop"), "usage: hyper-proxy ctl node drain INSTANCE NODE"),
        (("stop", "now"), "usage: hyper-proxy ctl stop"),
        ((), "which verb? hyper-proxy ctl --help lists them all"),
        (("--limit", "2", "show", "events"), "'show events' takes no --limit"),
        (("--worker", "0", "node", "drain", "shop", "a"), "'node drain' takes no --worker"),
        (("--timeout", "5", "reload"), "'reload' takes no --timeout"),
        (("--admin", "22122", "health"), "'22122' has no address: write 127.0.0.1:22122"),
        (("--admin", "/run/a.sock", "health"), "write a unix socket as 'unix:/run/a.sock'"),
    ],
)
def test_wrong_words_are_status_2_and_say_what_is_right(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_fleet_that_is_not_there_or_not_ours(tmp_path: Path) -> None:
    done = run("--admin", f"127.0.0.1:{free_port()}", "show", "workers")
    assert (done.returncode, "no fleet answers on" in done.stderr) == (1, True)
    done = run("--admin", f"unix:{tmp_path / 'none.sock'}", "show", "workers")
    assert (done.returncode, "No such file" in done.stderr) == (1, True)


@pytest.mark.parametrize("protocol", ["redis", "memcache", "http"])
def test_who_asks_a_front_for_the_sidecar_is_told(
    protocol: str, start_fleet: Callable[[str], Fleet], tmp_path: Path
) -> None:
    port = free_port()
    start_fleet(f'''[[instance]]
name = "front"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["keys.db"]
''')
    done = run("--admin", f"127.0.0.1:{port}", "show", "workers")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"what answers on 127.0.0.1:{port} is no sidecar of a fleet" in done.stderr


def test_a_file_that_was_changed_says_how_else_the_fleet_is_reached(operated: Operated, tmp_path: Path) -> None:
    file, port = operated.fleet.file, operated.fleet.admin_port
    good = file.read_text()
    file.write_text(good.replace("drain_timeout_s = 1", 'drain_timeout_s = "1'))
    done = run("-c", str(file), "reload")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"\n{file}:3: error: HP103 is not valid toml: " in done.stderr
    assert "use --admin HOST:PORT (127.0.0.1:22122, if the file named none), or HUP" in done.stderr
    file.write_text("[admin]\nlisten = 5\n")
    assert f"\n{file}:2: error: HP105 admin.listen: " in run("-c", str(file), "reload").stderr
    free = free_port()
    file.write_text(good.replace(str(port), str(free)))
    done = run("-c", str(file), "reload")
    assert done.returncode == 1
    assert f"no fleet answers on 127.0.0.1:{free}" in done.stderr
    assert f"if {file} said another [admin] listen when the fleet read it: --admin OLD, or HUP" in done.stderr
    assert run("--admin", f"127.0.0.1:{port}", "reload").returncode == 0
    assert run("-c", str(file), "wait-ready").returncode == 0


def test_orders_need_the_token_and_a_unix_socket_will_do(redis_nodes: list[Running], tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    fleet = Operated(redis_nodes, tmp_path, f'[admin]\nlisten = "unix:{path}"\ntoken = "secret"').fleet
    try:
        admin = ("--admin", f"unix:{path}")
        wait_for(lambda: run(*admin, "health").returncode == 0, "it is ready", 20)
        refused = run(*admin, "drain")
        assert (refused.returncode, "from the environment: HYPER_PROXY_TOKEN" in refused.stderr) == (1, True)
        assert run(*admin, "drain", HYPER_PROXY_TOKEN="wrong").returncode == 1
        assert run(*admin, "drain", HYPER_PROXY_TOKEN="secret").returncode == 0
        assert run("-c", str(fleet.file), "undrain").returncode == 0, "the file has the token"
    finally:
        fleet.stop()


def test_a_slow_request_is_one_line_with_the_phases_of_its_time() -> None:
    phases = {f"{name}_us": 0 for name in ctl_show.PHASES} | {"storage_us": 251_400}
    record = {
        "at": 0, "instance": "shop", "command": "GET", "key": "k", "client": "10.0.0.9:5000", "node": "a",
        "total_us": 251_500, "error": "", **phases,
    }  # fmt: skip
    head, row = rows(ctl_show.slowlog({"slowlog": [record]}))
    shown = dict(zip(head, row, strict=True))
    assert (shown["total_ms"], shown["storage_ms"], shown["write_ms"]) == ("251.5", "251.4", "0.0")
    assert (shown["at"], shown["node"], shown["error"]) == ("1970-01-01T00:00:00Z", "a", "-")
    assert ctl_show.slowlog({"slowlog": []}) == "no request was slow"


def test_slow_requests_and_hot_keys_of_a_fleet_are_shown(
    own: Callable[[Running], Running], redis_nodes: list[Running], tmp_path: Path
) -> None:
    slow = own(redis_server())
    operated = Operated([slow], tmp_path, "[log]\nslow_ms = 100\n")
    try:
        with redis.Redis(port=operated.port, protocol=2) as client:
            for _ in range(2000):
                client.get("hot")
        with socket.create_connection(("127.0.0.1", operated.port), timeout=10) as sock:
            sock.sendall(b"GET warm\r\n")
            assert sock.recv(100) == b"$-1\r\n"
            slow.freeze()
            sock.sendall(b"GET late\r\n")
            assert b"no answer within 200 ms" in sock.recv(200)
            slow.thaw()
        (entry,) = json.loads(operated.ctl("--json", "--limit", "1", "show", "slowlog"))["slowlog"]
        assert (entry["command"], entry["key"]) == ("get", digest(b"late"))
        _, line = operated.ctl("--limit", "1", "show", "slowlog").splitlines()
        assert line.split()[1:4] == ["shop", "get", digest(b"late")]
        assert f"{entry['total_us'] / 1000:.1f}" in line.split()
        wait_for(lambda: digest(b"hot") in operated.ctl("show", "hotkeys"), "the hot key is told of", 10)
    finally:
        operated.fleet.stop()


def test_who_has_no_server_is_told_where_servers_are_shown(tmp_path: Path) -> None:
    head = '[[instance]]\nname = "{0}"\nprotocol = "redis"\nlisten = ["127.0.0.1:{1}"]\n  [[instance.level]]\n'
    file = head + '  storage = "sqlite"\n  servers = ["{0}.db"]\n'
    text = file.format("one", free_port()) + file.format("two", free_port())
    with Fleet(text, tmp_path) as fleet:
        done = run("-c", str(fleet.file), "show", "nodes")
    told = "the proxy connects to no server for one, two: a file or a plug-in keeps the values"
    assert done.stdout.splitlines() == [told]


def test_a_local_level_is_shown_among_levels(tmp_path: Path) -> None:
    port = free_port()
    text = f'[proxy]\nworkers = 1\n[[instance]]\nname = "one"\nprotocol = "redis"\nlisten = ["127.0.0.1:{port}"]\n'
    text += "".join(f'  [[instance.level]]\n  storage = "{name}"\n' for name in ("local", "sqlite"))
    text += '  servers = ["a.db"]\n'
    with Fleet(text, tmp_path) as fleet:
        assert run("-c", str(fleet.file), "show", "levels").stdout == "no level above another has been used yet\n"
        with redis.Redis(port=port, protocol=2) as client:
            client.set("k", "v")
            assert (client.get("k"), client.get("k")) == (b"v", b"v")
        told = run("-c", str(fleet.file), "show", "levels").stdout
    assert told.startswith("one keeps copies in its workers (local): 1 hits, 1 misses, 1 keys, "), told
