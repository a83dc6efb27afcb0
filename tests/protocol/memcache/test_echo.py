"""Keys with a line feed, in base64: whatever memcached prints of them, answers stay whole and where they belong."""

from __future__ import annotations

import random
from base64 import b64encode

import pytest

from tests.kit.servers import Running
from tests.kit.worker import Worker
from tests.protocol.raw import Raw

FEED = b64encode(b"a\r\nHD")
FLAGS = [b"v", b"k", b"b", b"s", b"t", b"f", b"h", b"l", b"O7"]


@pytest.mark.parametrize("seed", range(3))
def test_an_item_that_was_stored_is_answered_as_memcached_does(both_sides: tuple[Raw, Raw], seed: int) -> None:
    proxy, server = both_sides
    dice = random.Random(seed)
    for stored in (False, True):
        for _ in range(60):
            flags = dice.sample(FLAGS, dice.randint(0, len(FLAGS)))
            request = b"mg %b %b\r\n" % (FEED, b" ".join(dict.fromkeys([*flags, b"b"])))
            if dice.random() < 0.3:
                request = request.replace(b"\r\n", b" q\r\n")
            assert proxy.memcache(request) == server.memcache(request), request
        for side in both_sides:
            side.memcache(b"ms %b 2 b T0\r\nxy\r\n" % FEED if not stored else b"md %b b\r\n" % FEED)


EVIL = b64encode(b"k\r\nVALUE x 0 4\r\nevil\r\nEND")


@pytest.mark.parametrize("make", [b"mg %b b N0 k v", b"mg %b N30 b q", b"ma %b b N0", b"ma %b b N0 k J5"])
def test_no_item_is_made_that_a_dump_would_print_as_it_is(worker: Worker, make: bytes) -> None:
    client = Raw(worker.ports["mc"])
    try:
        reply = client.memcache(make % EVIL + b"\r\n")
        assert reply.startswith(b"CLIENT_ERROR %b is not served: the key has a line feed" % make[:2])
        # a dump may list what was flushed before this test: of this key nothing
        dump = client.memcache(b"stats cachedump 1 0\r\nget x\r\n")
        assert b"evil" not in dump and dump.endswith(b"END\r\nEND\r\n")
    finally:
        client.close()


def test_what_a_key_says_is_never_the_answer_to_somebody_else(worker: Worker, memcached_nodes: list[Running]) -> None:
    for node in memcached_nodes:  # of which one has the key, and is asked by others too
        assert node.ask(b"mg %b b N0\r\n" % EVIL) == b"HD W\r\n"
    client = Raw(worker.ports["mc"])
    try:
        for request in (b"mg %b k b v q\r\n", b"mg %b s b k O1\r\n", b"ms %b 1 b k\r\n1\r\n", b"ma %b b k\r\n"):
            answer = client.memcache(request % EVIL + b"get x\r\n" * 3)
            assert answer.count(b"\r\n") - answer.count(b"VA ") == 4, answer
            assert answer.endswith(b"END\r\n" * 3) and b"k%b b" % EVIL in answer
        assert client.memcache(b"me %b b\r\n" % EVIL + b"get x\r\n") == (
            b"CLIENT_ERROR me is not served: the key has a line feed, which the server may print as it is\r\nEND\r\n"
        )
    finally:
        client.close()


@pytest.mark.parametrize("text", [b"E=q!E", b"+q=B", b"YQ0KSEQ", b"YQ0K=SEQ", b"%%%"])
def test_what_is_no_base64_is_refused(both_sides: tuple[Raw, Raw], text: bytes) -> None:
    """Memcached makes a key of some of it, which is another one than is placed."""
    proxy, _ = both_sides
    assert proxy.memcache(b"me %b b\r\n" % text) == b"CLIENT_ERROR bad command line format\r\n"
    refused = b"CLIENT_ERROR error decoding key\r\n"
    for request in (b"mg %b b\r\n", b"ms %b 1 b\r\nx\r\n", b"md %b b q\r\n", b"ma %b b\r\n"):
        assert proxy.memcache(request % text + b"get x\r\n") == refused + b"END\r\n"
