"""Servers that tell nonsense of a topology: it is looked for again, and the others are believed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
import redis

from tests.front.topology.cluster_kit import config
from tests.front.topology.liars import Seed, Sentinel
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for

NESTED = b"*1\r\n" * 3000 + b":1\r\n"


@pytest.mark.parametrize(
    ("first", "last"), [(b"+a", b":16383"), (b"$-1", b":5"), (b":-20000", b":16383"), (b":0", b":99999999"), (b"", b"")]
)
def test_nonsense_about_slots_is_asked_about_again(tmp_path: Path, first: bytes, last: bytes) -> None:
    with ExitStack() as stack:
        seed = stack.enter_context(Seed())
        port = free_port()
        fleet = stack.enter_context(Fleet(config(f'"{seed.address}"', port, workers=1), tmp_path))
        client = stack.enter_context(redis.Redis(port=port))
        assert client.get("key") == b"value of key"
        if first:
            seed.say(first, last)
        else:
            seed.say_slots(NESTED)
        seed.says.said[b"GET"] = b"-MOVED 12539 127.0.0.1:%d\r\n" % seed.port
        with pytest.raises(redis.ResponseError):
            client.get("key")
        fleet.wait_log("topology.unknown")
        looks = seed.looks
        wait_for(lambda: seed.looks > looks + 1, "it is asked again")
        seed.say(b":0", b":16383")
        del seed.says.said[b"GET"]
        assert client.get("key") == b"value of key"
        assert "Traceback" not in fleet.read_log()


def test_one_sentinel_alone_decides_nothing(tmp_path: Path) -> None:
    """A great epoch, and an address at which nobody is: the two others are right."""
    with ExitStack() as stack:
        old, new = (stack.enter_context(redis_server()) for _ in range(2))
        sentinels = [stack.enter_context(Sentinel("127.0.0.1", old.port, 1)) for _ in range(3)]
        port = free_port()
        listed = ", ".join(f'"{one.address}"' for one in sentinels)
        masters = '  masters = ["alpha"]\n'
        stack.enter_context(Fleet(config(listed, port, masters, "sentinel", workers=1), tmp_path))
        client = stack.enter_context(redis.Redis(port=port))
        there = stack.enter_context(redis.Redis(port=new.port))
        client.set("key", "old")
        sentinels[0].say("127.0.0.1", free_port(), 10**9)
        for honest in sentinels[1:]:
            honest.say("127.0.0.1", new.port, 2)

        def is_served_by(value: str) -> bool:
            try:
                client.set("key", value)
            except redis.ResponseError:
                return False
            return bool(there.get("key") == value.encode())

        wait_for(lambda: is_served_by("new"), "the new master serves")
        old.kill()
        wait_for(lambda: is_served_by("newer"), "it still does")
        sentinels[0].say("a" * 300, 7, 10**9)
        wait_for(lambda: is_served_by("newest"), "and in spite of a name that cannot be one")
