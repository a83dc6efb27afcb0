"""What `explain` says of every command of the tables is what a client of a fleet reads, wherever the proxy words it.

What a server words is no matter of explain: where it says "served", the client may read what a server without a proxy
answers to the same words, an error as well.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from hyper_proxy.config.load import load
from hyper_proxy.config.model import Config
from hyper_proxy.explain import explain
from hyper_proxy.protocol.explanation import BadQuestion
from hyper_proxy.protocol.redis.command import Command
from hyper_proxy.protocol.redis.commands import COMMANDS, subcommands_of
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, memcached, redis_server

StartFleet = Callable[[str], Fleet]
Own = Callable[[Running], Running]

# Where the least words that a command takes would say nothing, wait, or show one way of several. KEY and OTHER are on
# one shard, FAR maybe on another one.
SAMPLES = """
AUTH x | AUTH u x | AUTH default x
BLMOVE KEY OTHER LEFT LEFT 0.01 | BLMPOP 0.01 1 KEY LEFT | BLPOP KEY 0.01 | BLPOP KEY FAR 0.01 | BRPOP KEY 0.01
BRPOPLPUSH KEY OTHER 0.01 | BZMPOP 0.01 1 KEY MIN | BZPOPMAX KEY 0.01 | BZPOPMIN KEY 0.01
XREAD STREAMS KEY 0 | XREAD BLOCK 10 STREAMS KEY 0 | XREADGROUP GROUP g c BLOCK 10 STREAMS KEY >
WATCH KEY | WATCH KEY FAR | SCAN 0 | SCAN x | KEYS * | FLUSHALL | FLUSHDB | WAIT 0 10 | DBSIZE
MOVE KEY 1 | MOVE KEY 99 | COPY KEY OTHER | COPY KEY OTHER DB 1 | COPY KEY OTHER DB 99 | COPY KEY FAR
EVAL return(1) 0 | EVAL return(1) 1 KEY | EVAL return(1) 2 KEY FAR | EVAL_RO return(1) 1 KEY
SORT KEY | SORT KEY BY w_* | SORT KEY STORE OTHER | SUNION KEY FAR | RENAME KEY FAR
MGET KEY FAR | MSET KEY 1 FAR 2 | MSET KEY | MSETNX KEY 1 FAR 2 | MSETNX KEY 1 OTHER 2
SET KEY 1 | SET KEY 1 EX 0 | SET KEY 1 XX NX | SETEX KEY x 1 | INCRBY KEY x | GETRANGE KEY a b | EXPIRE KEY x
SELECT 0 | SELECT 3 | SELECT 16 | SELECT -1 | SELECT x | SELECT 99999999999999999999
HELLO | HELLO 3 | HELLO 9 | HELLO 2 AUTH a b | HELLO 2 SETNAME | EXEC | DISCARD | UNWATCH
CLIENT TRACKING ON | CLIENT TRACKING OFF | CLIENT REPLY ON | CLIENT REPLY x | CLIENT SETNAME x | CLIENT NO-EVICT x
CLIENT SETINFO LIB-NAME x | CLIENT SETINFO y x | CLIENT NO-TOUCH ON | DEBUG SLEEP 0 | PING x | PING x y
COMMAND GETKEYS GET a | COMMAND GETKEYS PING | COMMAND LIST FILTERBY x y | ACL CAT read | ACL CAT x
PUBLISH c x | SPUBLISH c x | SUBSCRIBE c | SSUBSCRIBE c | PSUBSCRIBE c | SCRIPT LOAD return(1) | FUNCTION LOAD x
"""
BY_HAND = frozenset(line.split()[0].lower().encode() for line in SAMPLES.replace("\n", "|").split("|") if line.strip())
# These would end the server that is compared with, or the connection to it in its own way.
NOT_ASKED = frozenset(b"bgrewriteaof bgsave cluster|reset failover migrate monitor psync replicaof save shutdown "
                      b"slaveof sync module|load module|loadex config|set acl|setuser debug".split())  # fmt: skip

HEAD = '[[instance]]\nname = "{}"\nprotocol = "{}"\nlisten = ["127.0.0.1:{}"]\n'
LEVEL = '  [[instance.level]]\n  storage = "{}"\n'
TAGGED = LEVEL.format("redis") + '  hash_tag = "{}"\n'
POOL = '    [[instance.level.pool]]\n    name = "x"\n    servers = ["{} x"]\n'
MIRROR = '    [instance.level.rooms]\n    writes = "mirror"\n    folder = "{}"\n'
LONG_AGO = "2020-01-01T00:00:00Z"


def servers(*nodes: Running) -> str:
    listed = ", ".join(f'"{node.address} n{node.port}"' for node in nodes)
    return f"  servers = [{listed}]\n"


def rows() -> Iterator[Command]:
    for row in COMMANDS.values():
        yield from subcommands_of(row).values() or [row]


def by_number(row: Command) -> list[bytes]:
    """As many words as it takes at least, with names where its keys stand."""
    verb = row.name.upper().split(b"|")
    words = [*verb, *[b"1"] * (abs(row.arity) - len(verb))]
    if row.find_keys is None and row.first:
        last = row.last if row.last >= 0 else len(words) + row.last
        for at in range(row.first, last + 1, row.step):
            words[at] = b"KEY" if at == row.first else b"OTHER"
    return words


def requests() -> Iterator[list[bytes]]:
    yield from (by_number(row) for row in rows() if row.name not in BY_HAND and row.name not in NOT_ASKED)
    yield from (sample.encode().split() for sample in SAMPLES.replace("\n", "|").split("|") if sample.strip())


def named(words: Iterable[bytes], prefix: str) -> list[bytes]:
    """With keys that no other request has."""
    keys = {b"KEY": f"{prefix}-k{{a}}", b"OTHER": f"{prefix}-l{{a}}", b"FAR": f"{prefix}-f{{b}}"}
    return [keys[word].encode() if word in keys else word for word in words]


def first_line(port: int, request: bytes) -> str:
    """Of the answer to a client that has just connected."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(request)
        with client.makefile("rb") as answer:
            return answer.readline().decode("utf-8", "replace").rstrip()


def resp(words: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def said_of(config: Config, name: str, words: list[bytes]) -> str | None:
    """The error that explain says the client reads, "" for none; None where it takes the words for no request."""
    try:
        return explain(config, name, words).outcome.error
    except BadQuestion:
        return None


class Asked:
    """A fleet and a lone server, and whatever explain and they do not agree on."""

    def __init__(self, config: Config, ports: dict[str, int], alone: Running, errors: tuple[str, ...]) -> None:
        self.config = config
        self.ports = ports
        self.alone = alone
        self.errors = errors
        self.wrong: list[str] = []

    def ask(self, name: str, words: list[bytes], request: bytes) -> None:
        said = said_of(self.config, name, words)
        read = first_line(self.ports[name], request)
        error = read.removeprefix("-") if read.startswith(self.errors) else ""
        if said == error or (said is None and error):
            return
        if said == "" and first_line(self.alone.port, request) == read:
            return
        self.wrong.append(f"{name}: {b' '.join(words)!r}: explain says {said!r}, the client reads {read!r}")


def start(
    start_fleet: StartFleet, levels: dict[str, str], protocol: str, allow: str, alone: Running, errors: tuple[str, ...]
) -> Asked:
    """A fleet with an instance for each name."""
    ports = {name: free_port() for name in levels}
    parts = [f"{HEAD.format(name, protocol, ports[name])}allow = {allow}\n{text}" for name, text in levels.items()]
    fleet = start_fleet("[proxy]\nworkers = 1\n" + "".join(parts))
    return Asked(load(str(fleet.file)), ports, alone, errors)


def test_of_redis(start_fleet: StartFleet, own: Own, tmp_path: Path) -> None:
    nodes = [own(redis_server()) for _ in range(15)]
    caches = [own(memcached()) for _ in range(3)]

    def two() -> str:
        return servers(nodes.pop(), nodes.pop())

    def one() -> str:
        return servers(nodes.pop())

    def routed(route: str) -> str:
        return f"{TAGGED}{one()}  route = {route}\n{POOL.format(nodes.pop().address)}"

    file = LEVEL.format("sqlite") + f'  servers = ["{tmp_path}/{{}}.db"]\n'
    rooms = f'  servers = ["{nodes.pop().address} a", "----", "{nodes.pop().address} a"]\n'
    levels = {
        "plain": TAGGED + two(),
        "numbered": TAGGED + one() + "  db = 1\n",
        "mirror": TAGGED + rooms + MIRROR.format(tmp_path / "m"),
        "class": routed('{ class = { read = "x", write = "main" } }'),
        "moving": routed(f'{{ move = "x", of = "main", begins = {LONG_AGO} }}'),
        "file": file.format("file"),
        "local": LEVEL.format("local") + TAGGED + two(),
        "cached": LEVEL.format("memcache") + servers(caches.pop()) + file.format("cached"),
        "values": LEVEL.format("memcache") + servers(*caches),
    }
    asked = start(start_fleet, levels, "redis", '["FLUSHALL", "FLUSHDB", "KEYS"]', nodes.pop(), ("-",))
    for name in levels:
        for number, request in enumerate(requests()):
            words = named(request, f"{name}-{number}")
            if (name, words) != ("mirror", [b"MULTI"]):  # which is answered OK: see below
                asked.ask(name, words, resp(words))
    assert not asked.wrong, "\n".join(asked.wrong)


def test_a_transaction_where_writes_go_to_two_rooms(start_fleet: StartFleet, own: Own, tmp_path: Path) -> None:
    first, second = (own(redis_server()) for _ in range(2))
    text = f'{TAGGED}  servers = ["{first.address} a", "----", "{second.address} a"]\n{MIRROR.format(tmp_path / "m")}'
    asked = start(start_fleet, {"mirror": text}, "redis", "[]", first, ("-",))
    said = said_of(asked.config, "mirror", [b"MULTI"])
    assert said == "ERR transactions and commands that wait are not served where writes go to two rooms"
    with socket.create_connection(("127.0.0.1", asked.ports["mirror"]), timeout=10) as client:
        client.sendall(b"MULTI\r\nSET a 1\r\nEXEC\r\nMULTI\r\nPING\r\nEXEC\r\nGET a\r\n")
        with client.makefile("rb") as answers:
            read = [answers.readline().decode().rstrip() for _ in range(7)]
    spoilt = "-EXECABORT Transaction discarded because of previous errors."
    assert read == ["+OK", f"-{said}", spoilt, "+OK", "+QUEUED", f"-{said}", "$-1"]


# Each is asked with a value of one byte behind it where it stores one; `mn` ends those that may be silent.
LINES = """
get KEY | gets KEY | bget KEY | get KEY FAR | gat 10 KEY | gats 10 KEY | gat x KEY | mn | version | quit
set KEY 0 0 1 | set KEY 5 0 1 | set KEY 0 10 1 | set KEY x 0 1 | set KEY 0 0 2000000 | set KEY 0 0 -1
add KEY 0 0 1 | replace KEY 0 0 1 | append KEY 0 0 1 | prepend KEY 0 0 1 | cas KEY 0 0 1 1
delete KEY | delete KEY 0 | delete KEY 5 | incr KEY 1 | incr KEY x | incr KEY | decr KEY 1 | touch KEY 10 | touch KEY x
mg KEY v | mg KEY v t f c | mg KEY q | mg KEY q q | mg KEY Z | mg YQ== b v | me KEY | md KEY | md KEY C5 | md KEY I
ms KEY 1 | ms KEY 1 F5 | ms KEY 1 T10 | ms KEY 1 C5 | ms KEY x | ma KEY | ma KEY N10 J5 | ma KEY D
mg E=q!E b | mg YQ0KSEQ= b k v | me YQ0KSEQ= b | me E=q!E b
verbosity 1 | verbosity x | stats | stats items | stats reset | stats cachedump 1 10
flush_all | flush_all 10 | flush_all x | flush_all -1 | cache_memlimit 64 | cache_memlimit x | stats noreply
slabs x | lru x | lru_crawler x | extstore x | shutdown | watch
"""
STORES = frozenset(b"set add replace append prepend cas ms".split())


def line_of(words: list[bytes]) -> bytes:
    data = b"1\r\n" if words[0] in STORES and b"1" in words[2:] else b""
    return b" ".join(words) + b"\r\n" + data + (b"mn\r\n" if words[0].startswith(b"m") else b"")


@pytest.mark.parametrize("allow", ["[]", '["FLUSH_ALL", "CACHE_MEMLIMIT"]'])
def test_of_memcache(allow: str, start_fleet: StartFleet, own: Own, tmp_path: Path) -> None:
    caches = [own(memcached()) for _ in range(9)]
    nodes = [own(redis_server()) for _ in range(2)]
    file = LEVEL.format("sqlite") + f'  servers = ["{tmp_path}/{{}}.db"]\n'
    memcache = LEVEL.format("memcache")
    first, second = (caches.pop().address for _ in range(2))
    levels = {
        "plain": memcache + servers(caches.pop(), caches.pop()),
        "mirror": f'{memcache}  servers = ["{first} a", "----", "{second} a"]\n{MIRROR.format(tmp_path / "m")}',
        "lushan": LEVEL.format("lushan") + servers(caches.pop()) + '  lushan_db = { hash = "crc32a", count = 8 }\n',
        "file": file.format("file"),
        "values": LEVEL.format("redis") + servers(*nodes),
        "cached": memcache + servers(caches.pop()) + memcache + servers(caches.pop()),
        "local": LEVEL.format("local") + file.format("local"),
    }
    asked = start(start_fleet, levels, "memcache", allow, caches.pop(), ("ERROR", "CLIENT_ERROR", "SERVER_ERROR"))
    for name in levels:
        for number, sample in enumerate(LINES.replace("\n", "|").split("|")):
            words = named(sample.encode().split(), f"{name}-{number}")
            if words:
                asked.ask(name, words, line_of(words))
    assert not asked.wrong, "\n".join(asked.wrong)


PATHS = """
GET KEY | HEAD KEY | PUT KEY | DELETE KEY | PUT KEY?ttl=5 | PUT KEY?ttl=x | PUT KEY?ttl=0 | PUT KEY?flags=5
PUT KEY?flags=x | GET LONG | PUT LONG | DELETE LONGER | GET /user:ann | PUT /
GET ALL | PUT ALL | DELETE ALL | GET /v1/openapi.json | PUT /v1/openapi.json
"""


def of_http(port: int, method: str, path: str) -> str:
    """Status and code of an error, "" for none; what depends on what is there is none."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, body=b"0" if method == "PUT" else None)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.status < 400 or method == "HEAD":
        return ""
    code = json.loads(body)["error"]["code"]
    return "" if code == "no_such_key" else f"{response.status} {code}"


def test_of_http(start_fleet: StartFleet, own: Own, tmp_path: Path) -> None:
    levels = {
        "file": LEVEL.format("sqlite") + f'  servers = ["{tmp_path}/x.db"]\n',
        "cache": LEVEL.format("memcache") + servers(own(memcached())),
        "values": LEVEL.format("redis") + servers(own(redis_server()), own(redis_server())),
    }
    limited = {name: f"{text}  [instance.limits]\n  max_key_bytes = 500\n" for name, text in levels.items()}
    asked = start(start_fleet, limited, "http", "[]", own(redis_server()), ())
    for name in levels:
        keys = {"KEY": f"/v1/{name}/k", "LONG": f"/v1/{name}/{'k' * 400}", "LONGER": f"/v1/{name}/{'k' * 600}",
                "ALL": f"/v1/{name}/_mget"}  # fmt: skip
        for sample in PATHS.replace("\n", "|").split("|"):
            if sample.strip():
                method, path = sample.split()
                word, _, query = path.partition("?")
                whole = keys.get(word, word) + (f"?{query}" if query else "")
                said = said_of(asked.config, name, [method.encode(), whole.encode()])
                read = of_http(asked.ports[name], method, whole)
                if said != read:
                    asked.wrong.append(f"{name}: {sample}: explain says {said!r}, the client reads {read!r}")
    assert not asked.wrong, "\n".join(asked.wrong)
