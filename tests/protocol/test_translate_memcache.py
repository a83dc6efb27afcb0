"""memcache verbs over each key-value storage: the same requests to memcached and to ours, the same bytes back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

import pytest

from hyper_proxy.protocol.memcache.translate import VERBS, execute
from hyper_proxy.protocol.redis import translate as redis_front
from hyper_proxy.protocol.redis.commands import COMMANDS
from hyper_proxy.storage.keyvalue import KeyValue
from tests.kit.servers import memcached
from tests.kit.wait import wait_for
from tests.protocol.memcache_requests import Generator, Request
from tests.protocol.raw import Raw


class Pair:
    """memcached and the translation, side by side."""

    def __init__(self, raw: Raw, kv: KeyValue) -> None:
        self.raw, self.kv = raw, kv

    def ours(self, *words: bytes, value: bytes = b"") -> bytes:
        return execute(self.kv, list(words), value)

    def both(self, request: Request) -> bytes:
        """The reply of memcached, after checking that ours is the same but for versions and a second of life."""
        theirs, ours = self.raw.memcache(request.encode()), execute(self.kv, request.words, request.value or b"")
        # After a bad command line memcached takes the data block for the next command; that is the session's matter.
        if request.value is not None and theirs != ours:
            theirs = theirs.removesuffix(b"ERROR\r\n")
        assert same(request, theirs, ours), f"{request}: memcached {theirs!r}, ours {ours!r}"
        return theirs

    def all(self, *lines: bytes) -> None:
        """Requests without spaces in their words; a line that stores is followed by its data after a `|`."""
        for line in lines:
            command, bar, value = line.partition(b"|")
            self.both(Request(command.split(), value if bar else None))


def same(request: Request, theirs: bytes, ours: bytes) -> bool:
    """Equal bytes, but in a meta command's line versions may differ, and lives by two seconds."""
    if request.words[0][:1] != b"m":
        return theirs == ours
    (left, _, left_value), (right, _, right_value) = (reply.partition(b"\r\n") for reply in (theirs, ours))
    pairs = zip_longest(left.split(b" "), right.split(b" "), fillvalue=b"")
    return left_value == right_value and all(same_word(*pair) for pair in pairs)


def same_word(left: bytes, right: bytes) -> bool:
    if re.fullmatch(rb"c[1-9][0-9]*", left) and re.fullmatch(rb"c[1-9][0-9]*", right):
        return True
    if re.fullmatch(rb"t[0-9]+", left) and re.fullmatch(rb"t[0-9]+", right):
        return abs(int(left[1:]) - int(right[1:])) <= 2
    return left == right


@pytest.fixture(scope="module")
def raw() -> Iterator[Raw]:
    # The maintainer holds items that were read lately, and a held item is not changed in place.
    with memcached("-o", "no_lru_maintainer") as server:
        connection = Raw(server.port)
        yield connection
        connection.close()


@pytest.fixture
def pair(raw: Raw, kv: KeyValue) -> Pair:
    raw.memcache(b"flush_all\r\n")
    return Pair(raw, kv)


@pytest.mark.parametrize("seed", range(40))
def test_random_sequences_get_the_replies_of_memcached(pair: Pair, seed: int) -> None:
    generator = Generator(seed)
    for _ in range(300):
        pair.both(generator.request())


def test_versions_that_were_read_can_be_compared(pair: Pair) -> None:
    pair.all(b"set a 0 0 1|1", b"set b 0 0 1|1")
    for ask, send in (
        (pair.raw.memcache, pair.raw.memcache),
        (lambda line: pair.ours(*line.split()), lambda text: execute(pair.kv, text.split(b"\r\n")[0].split(), b"2")),
    ):
        version = int(ask(b"gets a\r\n").split()[4])
        assert ask(b"gat 100 a\r\n").startswith(b"VALUE a 0 1\r\n")
        assert int(ask(b"gats 0 a\r\n").split()[4]) == version, "touching is no change"
        assert send(b"cas a 0 0 1 %d\r\n2\r\n" % version) == b"STORED\r\n"
        assert send(b"cas a 0 0 1 %d\r\n2\r\n" % version) == b"EXISTS\r\n"
        version = int(ask(b"mg a c\r\n").split()[1][1:])
        stored = send(b"ms a 1 c C%d\r\n2\r\n" % version)
        assert int(stored.split()[1][1:]) > version
        assert send(b"ms a 1 MA C%d\r\n2\r\n" % version) == b"EX\r\n"
        assert ask(b"ma a C%d\r\n" % version) == b"EX\r\n"
        assert ask(b"md a C%d\r\n" % version) == b"EX\r\n"
        assert ask(b"md a C%d\r\n" % int(ask(b"mg a c\r\n").split()[1][1:])) == b"HD\r\n"


def test_a_version_of_zero_is_compared_by_those_that_compare_it_in_memcached(pair: Pair) -> None:
    pair.all(b"set n 0 0 1|5")
    for mode in (b"S", b"A", b"P", b"R", b"E"):
        for key in (b"n", b"none"):
            pair.all(b"ms %b 1 C0 M%b|7" % (key, mode), b"mg n v")
    pair.all(b"ma n C0 v", b"md n C0", b"mg n v")


def test_nothing_grows_beyond_its_limit(pair: Pair) -> None:
    pair.kv.longest = 1 << 20  # as memcached's
    half = b"x" * 600_000
    for words in ([b"set", b"a", b"7", b"0", b"600000"], [b"append", b"a", b"0", b"0", b"600000"],
                  [b"prepend", b"a", b"0", b"0", b"600000"], [b"ms", b"a", b"600000", b"MA", b"k"],
                  [b"ms", b"a", b"600000", b"MP", b"q"]):  # fmt: skip
        pair.both(Request(words, half))
    pair.all(b"mg a s f", b"append a 0 0 1|y", b"mg a s f")


def test_numbers_change_in_place(pair: Pair) -> None:
    pair.all(b"set a 7 0 3|100", b"decr a 1", b"get a", b"incr a 900", b"get a", b"incr a 1", b"get a", b"decr a 5000")
    pair.all(b"get a")


def test_a_life_ends(pair: Pair) -> None:
    pair.all(b"set a 0 1 1|1", b"set b 0 0 1|1", b"touch b 1", b"ms c 1 T1|1")
    for ask in (pair.raw.memcache, lambda line: pair.ours(*line.split())):
        wait_for(lambda ask=ask: ask(b"get a b c\r\n") == b"END\r\n", "the keys expire")  # type: ignore[misc]
    pair.all(b"add a 0 0 1|1", b"replace b 0 0 1|1", b"append c 0 0 1|1", b"incr b 1", b"touch c 0", b"delete b")


def test_lives_of_meta_commands(pair: Pair) -> None:
    pair.all(b"ma n N30 t v", b"ma n t T50 c", b"ma n T70 t", b"ma n t", b"ma m T10 N40 t", b"ma o N40 T10 t")
    pair.all(b"ma p t N9", b"mg p t")
    pair.all(b"mg n t T90 v", b"mg n T0 t", b"mg n t", b"ms n 1 T20 t|5", b"mg n t f", b"mg zz t T5")


def test_an_opaque_token_has_a_limit(pair: Pair) -> None:
    long = b"O" + b"z" * 32
    pair.all(b"mg a " + long, b"ms a 1 " + long + b"|1", b"md a " + long, b"ma a " + long, b"ms a 1 Mx " + long + b"|1")


def test_flushing(pair: Pair) -> None:
    pair.all(b"flush_all x", b"set a 0 0 1|1", b"flush_all noreply", b"get a", b"flush_all", b"flush_all 0")
    pair.all(b"flush_all 0 noreply", b"flush_all x noreply", b"flush_all 0 x", b"flush_all 0 0 0")
    assert pair.ours(b"flush_all", b"10") == (
        b"CLIENT_ERROR flush_all with a delay is not served by an instance whose storage is %b\r\n"
        % pair.kv.kind.encode()
    )


@pytest.mark.parametrize("line", [
    b"get", b"set a 0 0", b"incr a", b"touch a", b"delete", b"mg", b"gat", b"gat x", b"gat 10", b"incr a 1 foo",
    b"mg a" + b" v" * 18, b"mg a" + b" v" * 17, b"md a" + b" k" * 18, b"ma a" + b" k" * 17,
])  # fmt: skip
def test_a_line_of_a_wrong_length_is_answered_as_by_memcached(pair: Pair, line: bytes) -> None:
    pair.all(b"set a 0 0 1|1", line)


@pytest.mark.parametrize("line", [b"mg a N30", b"mg a R30", b"mg a h", b"mg a l", b"ms a 1 I", b"md a I"])
def test_what_the_storage_cannot_hold_is_refused(pair: Pair, line: bytes) -> None:
    words = line.split()
    reason = b"CLIENT_ERROR flag %c of %b is not served by an instance whose storage is %b\r\n"
    assert pair.ours(*words) == reason % (words[-1][0], words[0], pair.kv.kind.encode())


def test_an_unserved_verb_is_told_what_is_served(pair: Pair) -> None:
    reply = pair.ours(b"me", b"a")
    reason = b"CLIENT_ERROR 'me' is not served by an instance whose storage is %b (it serves: add "
    assert reply.startswith(reason % pair.kv.kind.encode())
    assert all(b" %b" % verb in reply for verb in VERBS)


def test_what_one_front_wrote_the_other_reads(pair: Pair) -> None:
    class View:
        resp = 2

    def redis(line: bytes) -> bytes:
        argv = line.split()
        return redis_front.execute(pair.kv, COMMANDS[argv[0].lower()], argv, View())

    pair.ours(b"set", b"m", b"5", b"100", b"4", value=b"\x00 \xff\r")
    assert redis(b"GET m") == b"$4\r\n\x00 \xff\r\r\n"
    assert redis(b"TTL m") == b":100\r\n"
    redis(b"SET r 10 EX 50")
    assert pair.ours(b"mg", b"r", b"v", b"f", b"t") == b"VA 2 f0 t50\r\n10\r\n"
    assert redis(b"INCRBY r -1") == b":9\r\n"
    assert pair.ours(b"incr", b"r", b"11") == b"20\r\n"
    pair.ours(b"decr", b"r", b"15")
    assert redis(b"GET r") == b"$2\r\n5 \r\n", "memcached pads in place"
    assert redis(b"INCR r") == b"-ERR value is not an integer or out of range\r\n"
    version = int(pair.ours(b"gets", b"r").split()[4])
    redis(b"APPEND r x")
    assert pair.ours(b"cas", b"r", b"0", b"0", b"1", b"%d" % version, value=b"z") == b"EXISTS\r\n"
    assert abs(float(redis(b"PTTL r")[1:]) / 1000 - 50) < 5
