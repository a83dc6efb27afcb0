"""The proxy over three memcacheds answers as one memcached does, byte for byte."""

from __future__ import annotations

import random
import re

import pytest

from tests.protocol.memcache.requests import COMMANDS, LONG, META
from tests.protocol.raw import Raw


def ask(side: Raw, request: bytes) -> bytes:
    """The reply, comparable."""
    return comparable(side.memcache(request))


def comparable(reply: bytes) -> bytes:
    """Cas tokens are a server's own: their digits do not count. Each server's seconds begin when it was started, so
    that what is left of a life may be one less on one side: the tens count, rounded up.
    """
    reply = re.sub(rb"(VALUE \S+ \d+ \d+) \d+\r\n", rb"\1 CAS\r\n", reply)
    reply = re.sub(rb" t(\d+)(?= |\r)", lambda found: b" t%d" % (-(-int(found[1]) // 10) * 10), reply)
    return re.sub(rb" c[1-9]\d*(?= |\r)", b" cCAS", reply)


@pytest.mark.parametrize("requests", [COMMANDS, META], ids=["commands", "meta"])
def test_odd_requests(both_sides: tuple[Raw, Raw], requests: list[bytes]) -> None:
    proxy, server = both_sides
    for request in requests:
        assert ask(proxy, request) == ask(server, request), request[:200]


def test_a_pipeline_of_odd_requests_keeps_its_order_and_its_connection(both_sides: tuple[Raw, Raw]) -> None:
    """Without retrievals of too long keys: with their error memcached forgets the replies before it in a pipeline."""
    proxy, server = both_sides
    requests = [request for request in COMMANDS + META if len(request) < 3000]
    pipeline = b"".join(request for request in requests if not (request[:1] == b"g" and LONG in request))
    assert ask(proxy, pipeline) == ask(server, pipeline)


KEYS = [b"a", b"b", b"c", b"d", b"key:5", b"key:6", b"text"]
VALUES = [b"", b"0", b"5", b"99", b"text", b"\r\n", b"END\r\n", b"VALUE a 0 1\r\nx\r\n"]


def random_request(dice: random.Random) -> bytes:
    """A good request of any kind.

    Numbers only grow: how memcached pads one that gets shorter depends on who else holds the item at that moment.
    """
    key, value = dice.choice(KEYS), dice.choice(VALUES)
    encoded = {b"a": b"YQ==", b"key:5": b"a2V5OjU="}.get(key)
    noreply = dice.choice([b"", b"", b" noreply"])
    quiet = dice.choice([b"", b" q"])
    keys = b" ".join(dice.choice(KEYS) for _ in range(dice.randint(1, 9)))
    meta_key = encoded if encoded and dice.random() < 0.5 else key
    base64 = b" b" if meta_key is encoded else b""
    store = dice.choice([b"add", b"replace", b"append", b"prepend"])
    mode = dice.choice([b"", b" ME", b" MA", b" MR O1 k", b" T90"])
    return dice.choice(
        [
            b"get %b\r\n" % keys, b"gets %b\r\n" % keys, b"gat 100 %b\r\n" % keys, b"get %b\r\n" % key,
            b"set %b 3 0 %d%b\r\n%b\r\n" % (key, len(value), noreply, value),
            b"%b %b 1 0 %d%b\r\n%b\r\n" % (store, key, len(value), noreply, value),
            b"cas %b 0 0 %d 999999999%b\r\n%b\r\n" % (key, len(value), noreply, value),
            b"delete %b%b\r\n" % (key, noreply), b"touch %b 100%b\r\n" % (key, noreply),
            b"incr n %d%b\r\n" % (dice.randint(0, 20), noreply), b"incr word 1%b\r\n" % noreply,
            b"mg %b%b%b%b\r\n" % (meta_key, base64, dice.choice([b" v", b" k", b" s v t", b" f O7"]), quiet),
            b"ms %b %d%b%b%b\r\n%b\r\n" % (meta_key, len(value), base64, quiet, mode, value),
            b"md %b%b%b\r\n" % (meta_key, base64, quiet),
            b"ma n%b%b\r\n" % (quiet, dice.choice([b"", b" v", b" k O1 v"])),
            b"mn\r\n", b"verbosity 0%b\r\n" % noreply,
        ]
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_random_conversations(both_sides: tuple[Raw, Raw], seed: int) -> None:
    """One request at a time and in pipelines; noreply and quiet ones among them."""
    proxy, server = both_sides
    dice = random.Random(seed)
    for _ in range(150):
        if dice.random() < 0.1:
            number = b"set n 0 0 2\r\n10\r\nset word 0 0 4\r\ntext\r\n"
            assert ask(proxy, number) == ask(server, number)
        request = b"".join(random_request(dice) for _ in range(dice.choice([1, 1, 2, 20])))
        assert ask_all(proxy, request) == ask_all(server, request), request


def ask_all(side: Raw, request: bytes) -> bytes:
    """As `ask`, where `mn` may stand in the request: the end is marked by another answer that nothing else has."""
    side.sock.sendall(request + b"delete end-of-request 1\r\n")
    mark = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
    reply = b""
    while not reply.endswith(mark):
        line = side.file.readline()
        assert line, reply
        reply += line
    return comparable(reply)
