"""A server that loads its keys from the disk decides at once that its peer serves; when it has, it is trusted again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.kit.loading import VALUE, load_on, load_slowly
from tests.kit.rooms import Site
from tests.kit.servers import Running
from tests.kit.wait import wait_for

LONG = """
    [instance.level.backoff]
    base_ms = 60000
    max_ms = 60000
    [instance.level.timeout]
    read_ms = 1000
"""


def prepare(site: Site) -> Running:
    """A server of the first room with keys that it can load."""
    site.wait_until_served_by(0)
    server = site.rooms[0][0]
    direct = site.to(server.port)
    direct.config_set("rdbcompression", "no")
    for number in range(300):
        direct.set(f"key:{number}", VALUE)
    dump = Path(direct.config_get("dir")["dir"], direct.config_get("dbfilename")["dbfilename"])
    site.stack.callback(dump.unlink)
    return server


def test_it_returns_as_soon_as_it_has_loaded(build: Callable[..., Site]) -> None:
    site = build("redis", "", below=LONG, workers=4)
    server = prepare(site)
    load_slowly(server)
    wait_for(lambda: site.stat("n0@second", "serving") == 4, "its peer serves")

    def asked() -> int:
        errors: dict[str, int] = site.fleet.stats()["instances"]["shop"]["nodes"]["n0"]["errors"]
        return errors.get("loading", 0)

    wait_for(lambda: asked() > 20, "all workers ask it while it loads")
    load_on(server)
    site.wait_until_served_by(0)
    assert site.fleet.read_log().count("room.switched") == 1


def test_what_it_said_while_it_loaded_counts_no_longer(build: Callable[..., Site]) -> None:
    site = build("redis", "", below=LONG, workers=1)
    server, peer = prepare(site), site.rooms[1][0]
    peer.kill()
    site.fleet.wait_log("room.spare_down")
    load_slowly(server)
    client = redis.Redis(port=site.port, db=3, socket_timeout=20, retry=Retry(NoBackoff(), 0))
    site.stack.enter_context(client)

    def answer(key: str) -> str:
        try:
            client.incr(key)
        except redis.RedisError as error:
            return f"{type(error).__name__}: {error}"
        return "done"

    key = next(key for key in map(str, range(100)) if answer(key) != "done")
    wait_for(lambda: answer(key).startswith("BusyLoadingError"), "it says so to its clients")
    load_on(server)
    wait_for(lambda: not site.stat("n0", "down"), "it is well again")
    peer.start()
    assert answer(key) == "done"
    assert "room.switched" not in site.fleet.read_log()
