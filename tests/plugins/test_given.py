"""What a plug-in's `map` gives a storage that it can't keep: refused as the plug-in's fault before anything is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from tests.kit.ports import free_port
from tests.kit.servers import redis_server
from tests.kit.wait import wait_for
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.test_faults import line_of
from tests.plugins.texts import config, instance

WRITER = '''
from hyper_proxy import plugin
from hyper_proxy.plugin import Expire, Put, Remove

WRONG = [
    lambda storage: storage.put_many([(b"k", Put("text"))]),  # a text
    lambda storage: storage.put_many([(b"k", Put(b"v", expires_at=float("inf")))]),
    lambda storage: storage.put_many([(b"k", Put(b"v", -1))]),
    lambda storage: storage.put_many([("k", Put(b"v"))]),
    lambda storage: storage.put_many([(b"k", b"v")]),
    lambda storage: storage.put_many({b"k": Put(b"v")}),
    lambda storage: storage.put_many((b"k", Put(b"v")) for _ in "a"),
    lambda storage: storage.put_many_if_absent([(b"k", Put(5))]),
    lambda storage: storage.store(b"k", bytearray(b"v")),
    lambda storage: storage.store(b"k", b"v", 0, expires_at="soon"),
    lambda storage: storage.store("k", b"v"),
    lambda storage: storage.append(b"k", "v", create=True),
    lambda storage: storage.incr_signed(b"k", 1.5),
    lambda storage: storage.incr_signed("k", 1),
    lambda storage: storage.incr_signed(b"k", 2**64),
    lambda storage: storage.incr_unsigned(b"k", 2**64),
    lambda storage: storage.store(b"k", b"v", mode="set"),
    lambda storage: storage.store(b"k", b"v", 0, None, None),
    lambda storage: storage.store(b"k", b"v", version=-1),
    lambda storage: storage.scan(-1, 5),
    lambda storage: storage.scan(0, None),
    lambda storage: storage.scan(0, 2**70),
    lambda storage: storage.close(),  # which is not its own
    lambda storage: storage.release(None),
    lambda storage: storage.expire_many([b"k"], float("nan")),
    lambda storage: storage.persist("k"),
    lambda storage: storage.get_many("k"),
    lambda storage: storage.read_many(b"k"),
    lambda storage: storage.delete_many(key for key in [b"k"]),
    lambda storage: storage.update([b"k"], lambda items: ([Put("text")], 1)),
    lambda storage: storage.update([b"k"], lambda items: ([Expire(1e300)], 1)),
    lambda storage: storage.update([b"k"], lambda items: (["remove"], 1)),
    lambda storage: storage.update([b"k"], lambda items: ([], 1)),
    lambda storage: storage.update(["k"], lambda items: ([Put(b"v")], 1)),
]
RIGHT = [
    lambda storage: storage.put_many([(b"k", Put(b"1", 0, 9e9))]),
    lambda storage: storage.incr_signed(b"k", 1),
    lambda storage: storage.append(key=b"k", data=b"0", create=True),
    lambda storage: storage.expire_many([b"k"], None),
    lambda storage: storage.update([b"k"], lambda items: ([Put(items[0].value + b"!", items[0].flags)], 1)),
    lambda storage: storage.update([b"k", b"l"], lambda items: ((None, Remove()), 1)),
    lambda storage: (storage.scan(0, 10), storage.count(), storage.kind, storage.keeps_versions),
    lambda storage: storage.read_many({b"k": 1}.keys())[0].value,
]


@plugin.protocol("writer")
class Writer(plugin.Protocol):
    def unserialize(self, buffer, start):
        end = buffer.find(b"\\n", start)
        return None if end < 0 else (plugin.Request("put", content=buffer[start:end].split()), end + 1)

    def split(self, request):
        return [request.content]

    def map(self, storage, part):
        calls = WRONG if part[0] == b"wrong" else RIGHT
        return calls[int(part[1])](storage)

    def reduce(self, request, results):
        return results[0]

    def serialize(self, reply):
        return f"{reply}\\n".encode()

    def refuse(self, error):
        return f"! {error.kind}: {error}\\n".encode()
'''
WRONG = WRITER.partition("RIGHT")[0].count("    lambda storage")
RIGHT = WRITER.partition("RIGHT")[2].count("    lambda storage")
REFUSED = b"! plugin: plug-in 'writer.py' failed in map"


@pytest.mark.parametrize("storage", ["sqlite", "redis"])
def test_what_cannot_be_kept_is_refused_and_not_kept(start: Start, folder: Path, storage: str) -> None:
    (folder / "writer.py").write_text(WRITER)
    port, reader = free_port(), free_port()
    with redis_server() as server:
        servers = [server.address] if storage == "redis" else ["keys.db"]
        fleet = start(config(["writer.py"], *(instance(front, at, storage, servers) for front, at in
                                              (("writer", port), ("redis", reader)))))  # fmt: skip
        with Lines(port) as client, redis.Redis(port=reader) as other:
            answers = client.ask(b"".join(b"wrong %d\n" % number for number in range(WRONG)), WRONG)
            assert answers == [REFUSED] * WRONG
            assert other.dbsize() == 0
            answers = client.ask(b"".join(b"right %d\n" % number for number in range(RIGHT)), RIGHT)
            assert not [answer for answer in answers if answer.startswith(b"!")], answers
            assert answers[-1] == b"b'20!'"
            assert other.get("k") == b"20!"
        at = f"at={folder / 'writer.py'}:{line_of(WRITER, '# a text')} "
        fleet.wait_log(f'{at}error="TypeError: what is to be stored has a value that is no bytes, but of the class str')
        assert "worker.fault" not in fleet.read_log()


def test_what_waits_behind_an_upper_level_is_not_held_up(start: Start, folder: Path) -> None:
    (folder / "writer.py").write_text(WRITER)
    port = free_port()
    with redis_server() as server:
        upper = f'[[instance.level]]\n  storage = "redis"\n  servers = ["{server.address}"]\n  write = "behind"\n  '
        both = instance("writer", port).replace("[[instance.level]]\n", f"{upper}[[instance.level]]\n")
        fleet = start(config(["writer.py"], both))
        with Lines(port) as client:
            answers = client.ask(b"".join(b"wrong %d\n" % number for number in range(WRONG)), WRONG)
            assert answers == [REFUSED] * WRONG
            assert client.ask(b"right 0\n") == [b"None"]
        name = f"writer{port}"
        wait_for(lambda: fleet.stats()["instances"][name]["behind"] == 0, "what waits is below")
        assert fleet.stats()["instances"][name]["behind_retries"] == 0
        assert fleet.stats()["instances"][name]["errors"] == {"plugin": WRONG}
