"""The example storage behind the built-in fronts, as any other storage."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pymemcache
import pytest
import redis

from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_toy import explain
from tests.plugins.texts import config, instance

NAMES = ("north", "south", "west")
FOLDERS = tuple(f"{name} {name}" for name in NAMES)
SPREAD = 'hash = "md5"'


def test_every_front_answers_from_the_files_of_directories(start: Start, folder: Path) -> None:
    ports = {name: free_port() for name in ("redis", "memcache", "http", "toy")}
    fronts = [instance(one, port, "folder", FOLDERS, SPREAD) for one, port in ports.items()]
    start(config(["folder.py", "toy.py"], *fronts))
    client = redis.Redis(port=ports["redis"])
    values = {f"key:{number}": f"value {number}".encode() for number in range(60)}
    client.mset(values)
    assert client.mget(values) == list(values.values())
    assert client.dbsize() == 60
    assert {key.decode() for key in client.scan_iter(count=7)} == set(values)
    with_keys = [len(list((folder / name).glob("*.value"))) for name in NAMES]
    assert sum(with_keys) == 60
    assert min(with_keys) > 5
    assert pymemcache.Client(("127.0.0.1", ports["memcache"])).get("key:7") == b"value 7"
    with Lines(ports["toy"]) as toy:
        assert toy.ask(b"get key:7 key:100\n", lines=2) == [b"=value 7", b"-"]
    assert client.delete("key:7", "key:8", "key:100") == 2
    assert client.incr("counter") == 1
    assert client.append("counter", "0") == 2
    assert client.get("counter") == b"10"


def test_a_file_that_somebody_else_writes_is_a_value(start: Start, folder: Path) -> None:
    port = free_port()
    start(config(["folder.py"], instance("redis", port, "folder", ["pages"])))
    (folder / "pages" / "index.value").write_bytes(b"<html>")
    assert redis.Redis(port=port).get("index") == b"<html>"


@pytest.mark.parametrize("key", [b"../escape", b"..", b".", b"/etc/passwd", b"a\0b", b"\xff\n", b""])
def test_no_key_leaves_the_directory(start: Start, folder: Path, key: bytes) -> None:
    port = free_port()
    start(config(["folder.py"], instance("redis", port, "folder", ["pages"])))
    client = redis.Redis(port=port)
    before = {path for path in folder.rglob("*") if "pages" not in path.parts}
    client.set(key, "v")
    assert client.get(key) == b"v"
    assert list(client.scan_iter()) == [key]
    assert {path for path in folder.rglob("*") if "pages" not in path.parts} == before


def test_what_a_file_cannot_keep_is_refused(start: Start) -> None:
    port, other = free_port(), free_port()
    fronts = [instance("redis", port, "folder", ["pages"]), instance("memcache", other, "folder", ["pages"])]
    start(config(["folder.py"], *fronts))
    client = redis.Redis(port=port)
    with pytest.raises(redis.ResponseError, match="a file keeps no time of expiry"):
        client.set("a", "1", ex=10)
    with pytest.raises(redis.ResponseError, match="too long for the name of a file"):
        client.set("k" * 300, "1")
    with pytest.raises(pymemcache.exceptions.MemcacheError, match="a file keeps no flags"):
        pymemcache.Client(("127.0.0.1", other)).set("a", "1", flags=3, noreply=False)
    assert client.get("a") is None


def test_a_disk_that_fails_is_a_typed_error_and_the_worker_goes_on(start: Start, folder: Path) -> None:
    port = free_port()
    fleet = start(config(["folder.py"], instance("redis", port, "folder", ["pages"])))
    client = redis.Redis(port=port)
    client.set("a", "1")
    (folder / "pages" / "b.value").mkdir()
    with pytest.raises(redis.ResponseError, match=r"node '.*pages': get_many: .*Is a directory"):
        client.get("b")
    assert client.get("a") == b"1"
    wait_for(lambda: fleet.stats()["instances"][f"redis{port}"]["errors"].get("io") == 1, "the error is counted")


def test_a_change_is_one_step_whichever_worker_makes_it(start: Start) -> None:
    port = free_port()
    fleet = start(config(["folder.py"], instance("redis", port, "folder", ["pages"]), workers=2))
    fleet.wait_log("worker.ready slot=0 ")
    fleet.wait_log("worker.ready slot=1 ")
    clients = [redis.Redis(port=port) for _ in range(8)]

    def count(client: redis.Redis) -> None:
        for _ in range(25):
            client.incr("counter")

    with ThreadPoolExecutor(len(clients)) as pool:
        list(pool.map(count, clients))
    assert clients[0].get("counter") == b"200"


def test_it_is_the_last_of_two_levels(start: Start, folder: Path, redis_nodes: list[Running]) -> None:
    port = free_port()
    level = f'[[instance.level]]\n  storage = "redis"\n  servers = ["{redis_nodes[0].address}"]\n'
    one = instance("redis", port, "folder", ["pages"]).replace("[[instance.level]]\n", level + "  [[instance.level]]\n")
    start(config(["folder.py"], one))
    (folder / "pages" / "deep.value").write_bytes(b"found")
    assert redis.Redis(port=port).get("deep") == b"found"
    wait_for(lambda: redis.Redis(port=redis_nodes[0].port).exists("deep"), "a copy in the level above")


def test_explain_names_the_directory_of_a_key(start: Start, folder: Path) -> None:
    port = free_port()
    fleet = start(config(["folder.py"], instance("redis", port, "folder", FOLDERS, SPREAD)))
    client = redis.Redis(port=port)
    for number in range(12):
        client.set(f"k{number}", "v")
        found = json.loads(explain(fleet.file, "--json", f"redis{port}", "GET", f"k{number}"))
        place = found["keys"][0]["levels"][0]
        assert place["storage"] == "folder"
        assert (Path(place["node"]) / f"k{number}.value").exists()
        assert NAMES[place["shard"]] == place["label"] == Path(place["node"]).name
