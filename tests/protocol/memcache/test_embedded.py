"""The memcache front over a storage of the proxy itself (the verbs are tested in test_translate_memcache.py)."""

from __future__ import annotations

from pathlib import Path

from tests.kit.key_values import sqlite_level
from tests.kit.worker import Worker
from tests.protocol.raw import Raw

CONFIG = """
[[instance]]
name = "mc"
protocol = "memcache"
listen = ["127.0.0.1:21312"]
allow = ["flush_all"]
"""


def test_a_conversation(tmp_path: Path) -> None:
    with Worker(CONFIG + sqlite_level(str(tmp_path / "store.db"))) as worker:
        raw = Raw(worker.ports["mc"])
        pipeline = b"set a 3 0 1\r\n1\r\nset b 0 0 1 noreply\r\n2\r\nincr a 5\r\nget a b c a\r\n"
        pipeline += b"append a 0 0 1\r\nxy\r\nmg b v k\r\n"
        assert raw.memcache(pipeline) == (
            b"STORED\r\n6\r\nVALUE a 3 1\r\n6\r\nVALUE b 0 1\r\n2\r\nVALUE a 3 1\r\n6\r\nEND\r\n"
            b"CLIENT_ERROR bad data chunk\r\nERROR\r\nVA 1 kb\r\n2\r\n"
        )
        quiet = b"ms a 1 q\r\n7\r\nmg none v q\r\nms a 1\r\nxy\r\n"
        assert raw.memcache(quiet) == b"CLIENT_ERROR bad data chunk\r\nERROR\r\n"
        assert raw.memcache(b"get a\r\n") == b"VALUE a 0 1\r\n7\r\nEND\r\n"
        large = b"x" * ((1 << 20) + 1)
        reply = raw.memcache(b"set a 0 0 %d\r\n%b\r\n" % (len(large), large))
        assert reply == b"SERVER_ERROR object too large for cache\r\n"
        assert raw.memcache(b"get a\r\n") == b"END\r\n"
        assert raw.memcache(b"flush_all noreply\r\nget a b\r\n") == b"END\r\n"
        assert b"STAT pid " in raw.memcache(b"stats\r\n")
        raw.close()
