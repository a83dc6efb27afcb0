"""Random requests over keys of one hash tag: through the proxy and straight to a server they give the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tests.front.redis.conftest import Proxy, converse, encode
from tests.kit.servers import Running

Words = list[str]


def keys(rng: random.Random, kind: str, count: int = 1) -> Words:
    """Some keys that hold, for the most part, this kind of value."""
    return [f"{{tag}}{kind if rng.random() < 0.95 else 'string'}{rng.randrange(6)}" for _ in range(count)]


def number(rng: random.Random) -> str:
    """Of any size, seldom none at all."""
    return rng.choice(["0", "1", "-1", "2", "10", "-3", "100", "1.5", "-0", "x", "9223372036854775807"])


def word(rng: random.Random) -> str:
    """A value."""
    return rng.choice(["", "a", "b", "hello", "7", "3.25", "x" * 60, "\r\n", "0"])


def strings(rng: random.Random) -> Words:
    (key,) = keys(rng, "string")
    return rng.choice(
        [
            ["SET", key, word(rng)],
            ["SET", key, word(rng), rng.choice(["NX", "XX", "GET", "KEEPTTL", "EX", "BAD"])],
            ["GET", key],
            ["GETSET", key, word(rng)],
            ["GETDEL", key],
            ["GETRANGE", key, number(rng), number(rng)],
            ["SETRANGE", key, rng.choice(["0", "3", "20"]), word(rng)],
            ["APPEND", key, word(rng)],
            ["STRLEN", key],
            ["INCR", key],
            ["DECRBY", key, number(rng)],
            ["INCRBYFLOAT", key, number(rng)],
            ["SETBIT", key, rng.choice(["0", "7", "100"]), rng.choice(["0", "1", "2"])],
            ["BITCOUNT", key],
            ["BITFIELD", key, "INCRBY", "u8", "0", "100"],
            ["MSETNX", *[w for k in keys(rng, "string", 2) for w in (k, word(rng))]],
            ["MSET", *[w for k in keys(rng, "string", 3) for w in (k, word(rng))]],
            ["MGET", *keys(rng, "string", 4)],
            ["LCS", *keys(rng, "string", 2)],
            ["SUBSTR", key, "0", "2"],
        ]
    )


def lists(rng: random.Random) -> Words:
    (key,) = keys(rng, "list")
    return rng.choice(
        [
            ["RPUSH", key, word(rng), word(rng)],
            ["LPUSH", key, word(rng)],
            ["LPUSHX", key, word(rng)],
            ["LRANGE", key, number(rng), number(rng)],
            ["LLEN", key],
            ["LPOP", key],
            ["RPOP", key, "2"],
            ["LINDEX", key, number(rng)],
            ["LSET", key, number(rng), word(rng)],
            ["LINSERT", key, rng.choice(["BEFORE", "AFTER", "BAD"]), word(rng), word(rng)],
            ["LREM", key, number(rng), word(rng)],
            ["LTRIM", key, "0", number(rng)],
            ["LPOS", key, word(rng)],
            ["LMOVE", *keys(rng, "list", 2), "LEFT", "RIGHT"],
            ["RPOPLPUSH", *keys(rng, "list", 2)],
            ["LMPOP", "2", *keys(rng, "list", 2), "LEFT"],
            ["BLPOP", *keys(rng, "list", 2), "0.01"],
            ["SORT", key, "ALPHA"],
            ["SORT", key, "LIMIT", "0", "2", "STORE", *keys(rng, "list")],
        ]
    )


def hashes(rng: random.Random) -> Words:
    (key,) = keys(rng, "hash")
    return rng.choice(
        [
            ["HSET", key, word(rng), word(rng)],
            ["HSETNX", key, word(rng), word(rng)],
            ["HGET", key, word(rng)],
            ["HMGET", key, word(rng), word(rng)],
            ["HGETALL", key],
            ["HDEL", key, word(rng), word(rng)],
            ["HLEN", key],
            ["HEXISTS", key, word(rng)],
            ["HINCRBY", key, word(rng), number(rng)],
            ["HINCRBYFLOAT", key, "f", "1.5"],
            ["HKEYS", key],
            ["HSTRLEN", key, word(rng)],
            ["HSET", key, word(rng)],
        ]
    )


def sets(rng: random.Random) -> Words:
    (key,) = keys(rng, "zset")
    (small,) = keys(rng, "intset")
    return rng.choice(
        [
            ["ZADD", key, number(rng), word(rng)],
            ["ZADD", key, rng.choice(["NX", "XX", "GT", "CH", "INCR"]), number(rng), word(rng)],
            ["ZRANGE", key, "0", "-1", "WITHSCORES"],
            ["ZRANGEBYSCORE", key, "-inf", number(rng)],
            ["ZSCORE", key, word(rng)],
            ["ZMSCORE", key, word(rng), word(rng)],
            ["ZINCRBY", key, number(rng), word(rng)],
            ["ZRANK", key, word(rng)],
            ["ZCARD", key],
            ["ZCOUNT", key, "0", "5"],
            ["ZREM", key, word(rng)],
            ["ZPOPMIN", key],
            ["ZUNIONSTORE", *keys(rng, "zset"), "2", *keys(rng, "zset", 2)],
            ["ZINTER", "2", *keys(rng, "zset", 2), "WITHSCORES"],
            ["ZDIFF", "2", *keys(rng, "zset", 2)],
            ["SADD", small, str(rng.randrange(20))],
            ["SMEMBERS", small],
            ["SINTER", *keys(rng, "intset", 2)],
            ["SUNIONSTORE", *keys(rng, "intset", 3)],
            ["SDIFF", *keys(rng, "intset", 2)],
            ["SISMEMBER", small, "3"],
            ["SMOVE", *keys(rng, "intset", 2), "3"],
            ["SINTERCARD", "2", *keys(rng, "intset", 2)],
        ]
    )


def others(rng: random.Random) -> Words:
    kind = rng.choice(["string", "list", "hash", "zset", "intset", "stream", "hll", "geo"])
    (key,) = keys(rng, kind)
    return rng.choice(
        [
            ["DEL", *keys(rng, kind, 2)],
            ["UNLINK", *keys(rng, kind, 2)],
            ["EXISTS", *keys(rng, kind, 3)],
            ["TOUCH", *keys(rng, kind, 3)],
            ["TYPE", key],
            ["RENAME", *keys(rng, kind, 2)],
            ["RENAMENX", *keys(rng, kind, 2)],
            ["COPY", *keys(rng, kind, 2)],
            ["PERSIST", key],
            ["EXPIRE", key, "1000"],
            ["OBJECT", "ENCODING", key],
            ["XADD", "{tag}stream0", f"{rng.randrange(50)}-1", "f", word(rng)],
            ["XRANGE", "{tag}stream0", "-", "+"],
            ["XLEN", "{tag}stream0"],
            ["XGROUP", "CREATE", "{tag}stream0", "g", "0", "MKSTREAM"],
            ["XREAD", "COUNT", "2", "STREAMS", "{tag}stream0", "0"],
            ["PFADD", "{tag}hll0", word(rng)],
            ["PFCOUNT", "{tag}hll0", "{tag}hll1"],
            ["PFMERGE", "{tag}hll1", "{tag}hll0"],
            ["GEOADD", "{tag}geo0", "13.361389", "38.115556", word(rng)],
            ["GEODIST", "{tag}geo0", "a", "b"],
            ["EVAL", "return {KEYS[1], ARGV[1], redis.call('TYPE', KEYS[1])}", "1", key, word(rng)],
            ["EVAL", "return redis.error_reply('MY ERR')", "1", key],
            ["DUMP", key],
            ["PING"],
            ["PING", word(rng)],
            ["ECHO", word(rng)],
            ["SELECT", rng.choice(["0", "1", "99", "x"])],
            ["NOSUCH", word(rng), key],
            ["OBJECT", "NOSUCH", key],
            [rng.choice(["GET", "SET", "HSET", "ZADD", "LPUSH", "EXPIRE"])],
        ]
    )


FAMILIES: list[Callable[[random.Random], Words]] = [strings, lists, hashes, sets, others]


def requests(seed: int, count: int) -> bytes:
    """A conversation; parts of it are transactions."""
    rng = random.Random(seed)
    out = [encode("HELLO", "3"), encode("SET", "{tag}marker", "x")] if seed % 2 else []
    for _ in range(count):
        if rng.random() < 0.03:
            out.append(encode("WATCH", *keys(rng, "string", 2)))
        if rng.random() < 0.05:
            inside = [encode(*rng.choice(FAMILIES[:4])(rng)) for _ in range(rng.randrange(4))]
            out += [encode("MULTI"), *inside, encode(rng.choice(["EXEC", "EXEC", "DISCARD"]))]
        out.append(encode(*rng.choice(FAMILIES)(rng)))
    return b"".join(out)


def difference(ours: bytes, theirs: bytes) -> str:
    """Where they part, and what stands there in each; one of them may just have more."""
    shorter = min(len(ours), len(theirs))
    at = next((i for i in range(shorter) if ours[i] != theirs[i]), shorter)
    around = slice(max(0, at - 300), at + 200)
    sides = {"proxy": ours, "server": theirs}
    said = [f"{name}, {len(side)} bytes: {side[around]!r}" for name, side in sides.items()]
    return "\n\n".join([f"alike up to byte {at}", *said])


@pytest.mark.parametrize("seed", range(6))
def test_random_conversations_are_those_of_one_server(proxy: Proxy, oracle: Running, seed: int) -> None:
    data = requests(seed, 700)
    ours, theirs = converse(proxy.port, data), converse(oracle.port, data)
    if seed % 2:  # HELLO tells who answers
        ours, theirs = ours.partition(b"+OK\r\n")[2], theirs.partition(b"+OK\r\n")[2]
    assert ours == theirs, difference(ours, theirs)
