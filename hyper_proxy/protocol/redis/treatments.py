"""What the proxy does with each command: decided by hand, by name (`client|setname` is a subcommand).

Every command of commands.json has exactly one place here; a test holds the two together. The reason why a command is
refused stands at its row, and the client reads it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .command import ALL, ANY, BLOCK, LOCAL, REFUSED, SAME_SHARD, SCAN, SESSION, SINGLE, SPLIT, SUBSCRIBE


@dataclass(frozen=True, slots=True)
class Decision:
    """One command's treatment, with what belongs to it (see command.Command for the meaning of the fields)."""

    treatment: int
    reduce: str = ""
    why: str = ""
    dangerous: bool = False


# Treatment by name, for the treatments that need nothing else.
PLAIN: tuple[tuple[int, str], ...] = (
    (
        SINGLE,
        """
        append bitcount bitfield bitfield_ro bitpos decr decrby dump expire expireat expiretime geoadd geodist geohash
        geopos georadius_ro georadiusbymember_ro geosearch get getbit getdel getex getrange getset hdel hexists hget
        hgetall hincrby hincrbyfloat hkeys hlen hmget hmset hrandfield hscan hset hsetnx hstrlen hvals incr incrby
        incrbyfloat lindex linsert llen lpop lpos lpush lpushx lrange lrem lset ltrim memory|usage
        object|encoding object|freq object|idletime object|refcount persist pexpire pexpireat pexpiretime pfadd psetex
        pttl restore rpop rpush rpushx sadd scard set setbit setex setnx setrange sismember smembers smismember spop
        srandmember srem sscan strlen substr ttl type xack xadd xautoclaim xclaim xdel xgroup|create
        xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|setid xinfo|consumers xinfo|groups xinfo|stream
        xlen xpending xrange xrevrange xsetid xtrim zadd zcard zcount zincrby zlexcount zmscore zpopmax zpopmin
        zrandmember zrange zrangebylex zrangebyscore zrank zrem zremrangebylex zremrangebyrank zremrangebyscore
        zrevrange zrevrangebylex zrevrangebyscore zrevrank zscan zscore
        """,
    ),
    (
        SAME_SHARD,
        """
        bitop copy eval eval_ro evalsha evalsha_ro fcall fcall_ro georadius georadiusbymember geosearchstore lcs lmove
        lmpop move msetnx pfcount pfmerge rename renamenx rpoplpush sdiff sdiffstore sinter sintercard sinterstore smove
        sort sort_ro sunion sunionstore zdiff zdiffstore zinter zintercard zinterstore zmpop zrangestore zunion
        zunionstore
        """,
    ),
    (ANY, "function|dump function|list"),
    (SCAN, "scan"),
    (
        LOCAL,
        """
        acl acl|cat acl|help acl|whoami asking client client|getname client|getredir client|help client|id client|info
        client|no-evict client|no-touch client|setinfo client|setname client|tracking client|trackinginfo cluster
        command command|count command|docs command|getkeys command|getkeysandflags command|help
        command|info command|list config config|get config|help debug echo function function|help info latency
        latency|help lolwut memory memory|help module module|help module|list object object|help ping pubsub
        pubsub|help readonly readwrite role script script|help slowlog slowlog|help time xgroup xgroup|help xinfo
        xinfo|help
        """,
    ),
    (SESSION, "auth client|reply discard exec hello multi quit reset select unwatch watch"),
    (BLOCK, "blmove blmpop blpop brpop brpoplpush bzmpop bzpopmax bzpopmin xread xreadgroup"),
    (SUBSCRIBE, "psubscribe punsubscribe ssubscribe subscribe sunsubscribe unsubscribe"),
)

# Split by shard and put together by position or by sum.
SPLIT_BY: dict[str, str] = {
    "del": "sum",
    "exists": "sum",
    "mget": "by_position",
    "mset": "all_ok",
    "touch": "sum",
    "unlink": "sum",
}

# Sent to every node; the reducer (reducers.REDUCERS) makes one reply of theirs. Functions and scripts are code that
# each node must have; to load one is as powerful as to flush them, so neither asks for leave. What deletes data does.
ALL_BY: dict[str, str] = {
    "dbsize": "sum",
    "flushall": "all_ok",
    "flushdb": "all_ok",
    "function|delete": "all_ok",
    "function|flush": "all_ok",
    "function|kill": "any_ok",
    "function|load": "first",
    "function|restore": "all_ok",
    "function|stats": "running",
    "keys": "concat",
    "publish": "sum",
    "pubsub|channels": "union",
    "pubsub|numpat": "sum",
    "pubsub|numsub": "sum_by_name",
    "pubsub|shardchannels": "union",
    "pubsub|shardnumsub": "sum_by_name",
    "randomkey": "random",
    "script|exists": "minimum_by_position",
    "script|flush": "all_ok",
    "script|kill": "any_ok",
    "script|load": "first",
    "spublish": "sum",
    "wait": "minimum",
}

# Served only where the instance's `allow` names them: they delete everything, or hold every node up while they run.
DANGEROUS = frozenset({"flushall", "flushdb", "keys"})

_NODES = "it acts on one server; send it to that server itself"
_PERSISTENCE = "when and how servers write to disk is the business of each server; send it to that server itself"
_REPLICATION = "replication is between servers; a client of the proxy is no replica and cannot direct one"
_USERS = "users and passwords of the proxy are in its configuration"
_CLIENTS = "clients are spread over several workers; see `hyper-proxy ctl show clients`, `ctl disconnect ADDRESS`"
_TIMES = "each server keeps its own measurements; ask that server itself, or see `hyper-proxy ctl show slowlog`"
# Word for word what a server without cluster mode says: cluster clients look for it and take us for a plain server.
_CLUSTER = "This instance has cluster support disabled"

REFUSED_BECAUSE: tuple[tuple[str, str], ...] = (
    (_NODES, "memory|doctor memory|malloc-stats memory|purge memory|stats"),
    (_NODES, "module|load module|loadex module|unload shutdown"),
    (_PERSISTENCE, "bgrewriteaof bgsave lastsave save"),
    (_REPLICATION, "failover psync replconf replicaof slaveof sync"),
    (
        _USERS,
        """
        acl|deluser acl|dryrun acl|genpass acl|getuser acl|list acl|load acl|log acl|save acl|setuser acl|users
        """,
    ),
    (_CLIENTS, "client|kill client|list client|pause client|unblock client|unpause"),
    (_TIMES, "latency|doctor latency|graph latency|histogram latency|history latency|latest latency|reset"),
    (_TIMES, "slowlog|get slowlog|len slowlog|reset"),
    (
        _CLUSTER,
        """
        cluster|addslots cluster|addslotsrange cluster|bumpepoch cluster|count-failure-reports
        cluster|countkeysinslot cluster|delslots cluster|delslotsrange cluster|failover cluster|flushslots
        cluster|forget cluster|getkeysinslot cluster|help cluster|info cluster|keyslot cluster|links cluster|meet
        cluster|myid cluster|nodes cluster|replicas cluster|replicate cluster|reset cluster|saveconfig
        cluster|set-config-epoch cluster|setslot cluster|shards cluster|slaves cluster|slots
        """,
    ),
    ("keys are not tracked, so client-side caching cannot be switched on", "client|caching"),
    ("the proxy is configured by its file and a reload", "config|resetstat config|rewrite config|set"),
    ("the traffic of several servers is not one stream", "monitor"),
    ("moving keys to another server would take them from the shard that the proxy looks in", "migrate restore-asking"),
    ("it is a tool for developers of the server", "pfdebug pfselftest"),
    ("the debugger needs a server of its own", "script|debug"),
    ("two databases cannot be swapped at one moment on several servers", "swapdb"),
)

# Commands that servers of 7.0 do not have and that clients send all the same: (arity, flags, categories) as in 7.2.
ADDED: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    "client|setinfo": (4, ("noscript", "loading", "stale"), ("@slow", "@connection")),
    "client|no-touch": (3, ("noscript", "loading", "stale"), ("@slow", "@connection")),
}

# Writes that leave the same state behind when they are sent twice. What the second one says of the state before it (how
# many were new, SET's GET and NX) may differ from what the first one said.
_IDEMPOTENT = """
    del expireat geoadd hdel hmset hset lset mset persist pexpireat pfadd pfmerge psetex sadd sdiffstore set setbit
    setex setrange sinterstore srem sunionstore unlink xack xdel xgroup|destroy xgroup|setid zrem
"""
IDEMPOTENT_WRITES = frozenset(_IDEMPOTENT.split())


def _table() -> dict[str, Decision]:
    rows: list[tuple[str, Decision]] = []
    for treatment, names in PLAIN:
        rows += [(name, Decision(treatment)) for name in names.split()]
    rows += [(name, Decision(SPLIT, reduce=reduce)) for name, reduce in SPLIT_BY.items()]
    rows += [(name, Decision(ALL, reduce=reduce, dangerous=name in DANGEROUS)) for name, reduce in ALL_BY.items()]
    for why, names in REFUSED_BECAUSE:
        rows += [(name, Decision(REFUSED, why=_sentence(name, why))) for name in names.split()]
    table = dict(rows)
    if len(table) != len(rows):
        raise ValueError("a command is decided twice")
    return table


def _sentence(name: str, why: str) -> str:
    return why if why is _CLUSTER else f"'{name}' is not served by this proxy: {why}"


DECISIONS: dict[str, Decision] = _table()
