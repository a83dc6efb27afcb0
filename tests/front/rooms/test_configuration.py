"""What is said of rooms in a configuration, and what `explain` and `check` say of it."""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from hyper_proxy.common.board import Boards
from hyper_proxy.config.load import inspect_text
from hyper_proxy.config.model import Server
from hyper_proxy.conn_pool.rooms.local import LOOPBACK, nearer, networks
from hyper_proxy.explain import as_json, explain
from tests.kit.fleet import COMMAND, ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for

ROUTE = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
"""


def config(servers: str, more: str = "", protocol: str = "redis", storage: str = "redis", below: str = "") -> str:
    """A file with one instance."""
    return (
        f'[[instance]]\nname = "shop"\nprotocol = "{protocol}"\nlisten = ["127.0.0.1:7000"]\n'
        f'[[instance.level]]\nstorage = "{storage}"\nservers = [{servers}]\n{more}\n{below}'
    )


TWO = '"10.0.0.1:6379 a", "10.0.0.2:6379 b", "----", "10.1.0.1:6379 a", "10.1.0.2:6379 c"'
BELOW = '[[instance.level]]\nstorage = "sqlite"\nservers = ["keys.db"]\n'


def test_explain_names_both_nodes_of_a_pair() -> None:
    found, findings = inspect_text(config(TWO, 'rooms = { on_return = "empty" }'), "t.toml")
    assert found is not None
    assert findings == []
    peers = {"a": "a@second (10.1.0.1:6379)", "b": "c (10.1.0.2:6379)"}
    for number in range(10):
        (key,) = as_json(explain(found, "shop", [b"GET", b"k%d" % number]))["keys"]
        (level,) = key["levels"]
        assert level["route"] == f"in the second room {peers[level['label']]}"


def test_a_second_fleet_with_the_same_folder_does_not_start(tmp_path: Path) -> None:
    servers = f'"127.0.0.1:{free_port()} a", "----", "127.0.0.1:{free_port()} a"'
    rooms = f'rooms = {{ writes = "mirror", folder = "{tmp_path}/rooms" }}'
    one, two = (config(servers, rooms).replace("7000", str(free_port())) for _ in range(2))
    with Fleet(one, tmp_path) as first:
        file = tmp_path / "two.toml"
        file.write_text(f'[admin]\nlisten = "127.0.0.1:{free_port()}"\n{two}')
        command = [*COMMAND, "serve", "-c", str(file)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
        said = f"rooms.folder {tmp_path}/rooms: another fleet uses it (master {first.process.pid}): give each fleet a"
        assert (done.returncode, said in done.stderr) == (3, True), done
        assert first.reload().accepted


def test_a_folder_that_a_reload_leaves_may_be_had_by_another_fleet(tmp_path: Path) -> None:
    servers = [f'"127.0.0.1:{free_port()} a"' for _ in range(2)]
    rooms = f'rooms = {{ writes = "mirror", folder = "{tmp_path}/rooms" }}'
    both = ', "----", '.join(servers)
    with ExitStack() as stack:
        alone, one, two = (
            config(wanted, more).replace("7000", str(free_port()))
            for wanted, more in ((servers[0], ""), (both, rooms), (both, rooms))
        )
        first = stack.enter_context(Fleet(one, tmp_path))
        first.write(alone)
        assert first.reload().accepted
        second = stack.enter_context(Fleet(two, tmp_path))
        first.write(one)
        refused = first.reload()
        assert f"another fleet uses it (master {second.process.pid})" in str(refused.body)
        first.write(caches(alone, servers, [tmp_path / "free", tmp_path / "rooms"]))
        assert "another fleet uses it" in str(first.reload().body)
        wait_for(lambda: is_free(tmp_path / "free"), "what was built for nothing is given up")
        second.write(alone.replace(servers[0], servers[1]).replace(port_of(alone), port_of(two)))
        assert second.reload().accepted
        wait_for(lambda: first.reload().accepted, "the folder is free")


def caches(text: str, servers: list[str], folders: list[Path]) -> str:
    """The instance with caches above a file, each with rooms in one of these folders."""
    both = ', "----", '.join(servers)
    levels = [
        f'[[instance.level]]\nstorage = "redis"\nservers = [{both.replace(" a", f" {folder.name}")}]\n'
        f'rooms = {{ folder = "{folder}" }}\n'
        for folder in folders
    ]
    return text[: text.index("[[instance.level]]")] + "".join(levels) + BELOW


def is_free(folder: Path) -> bool:
    """Could another fleet have it?"""
    try:
        Boards().of(str(folder))
    except OSError:
        return False
    return True


def port_of(text: str) -> str:
    """Where the instance listens."""
    return str(re.findall(r'listen = \["127.0.0.1:(\d+)', text)[0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (config('"a:1"', "rooms = { hold_s = 1 }"), "there is one room"),
        (config(TWO, 'rooms = { writes = "mirror" }'), "takes a folder"),
        (config(TWO, 'rooms = { writes = "mirror", folder = "x", on_return = "keep" }'), "on_return has no effect"),
        (config(TWO, 'rooms = { folder = "not there/x" }'), "only the last one of the path is made"),
        (config(TWO, 'rooms = { folder = "/dev/null" }'), "/dev/null is no folder"),
        (config(TWO, 'connections = 2\nrooms = { writes = "mirror", folder = "x" }'), "takes connections = 1"),
        (config(TWO, 'rooms = { writes = "mirror" }', below=BELOW), "writes has no effect"),
        (config(TWO, protocol="http"), "not for http over redis"),
        (config('"10.0.0.1:6379 a", "----", "10.1.0.1:6379", "10.1.0.2:6379"'), "have 1 and 2 servers"),
        (config('"10.0.0.1:6379 a", "----", "10.0.0.1:6379 b"'), "is also"),
    ],
)
def test_what_can_not_be_kept_is_found(text: str, says: str) -> None:
    _, findings = inspect_text(text, "t.toml")
    assert any(says in finding.message for finding in findings), findings


def test_near_is_what_is_reached_without_a_gateway() -> None:
    assert [str(network) for network in networks(ROUTE)] == [str(LOOPBACK), "10.0.0.0/16"]


def test_the_room_with_more_servers_near_is_preferred() -> None:
    far, near = Server(host="192.0.2.1", port=1), Server(host="127.0.0.1", port=1)
    assert nearer([far], [near], ROUTE) == 1
    assert nearer([near], [far], ROUTE) == 0
    assert nearer([far, near], [near, far], ROUTE) == 0
    assert nearer([far], [Server(path="/run/a.sock")], ROUTE) == 1
