"""The settings of a level: its storage, its servers in pools and rooms, and how they are talked to."""

from __future__ import annotations

from hyper_proxy.config.ask import distribution_fault, hash_fault
from hyper_proxy.config.checks import (
    Choice,
    FilePath,
    Integer,
    Known,
    Size,
    Strings,
    Switch,
    Text,
    master_item,
    seconds,
)
from hyper_proxy.config.kinds import CACHES, KINDS, LOCAL, LOGIN, NETWORK, PIPELINED, PLACED, SQL
from hyper_proxy.config.lushan_rule import LushanRule
from hyper_proxy.config.model import GIB, KIB
from hyper_proxy.config.place import REQUIRED
from hyper_proxy.config.routes import RouteRule
from hyper_proxy.config.setting import DAY_S, MS, NAME, REDIS, SECRET, Setting, names
from hyper_proxy.config.table_rule import HeartbeatRule, TableRule, WhereRule
from hyper_proxy.config.years_rule import YearsRule

_TAG = Text(r"(?:[!-~]{2})?", "two visible ASCII characters such as '{}', or '' for none")
_ADDRESSES = '"host:port[:weight][ alias]" or "unix:/path[:weight][ alias]"'
_SERVERS = Strings(str, f'{_ADDRESSES}; for sqlite one "path/of/file.db"')
_POOL_SERVERS = Strings(str, _ADDRESSES)
_WRITERS = Strings(str, '"host:port[ alias]" or "unix:/path[ alias]"', empty=True)
_MASTERS = Strings(master_item, "names of masters", empty=True)
_DATABASE = Text(r"[A-Za-z0-9_$-]{0,64}", "a name of at most 64 letters, digits, '_', '$' and '-', or ''")
_HASH = Known(hash_fault, 'string: a name of docs/hashing.md, or "" for the default of the distribution')
_DISTRIBUTION = Known(distribution_fault, "string: a name of docs/hashing.md")
_ANY_DISTRIBUTION = Known(distribution_fault, 'string: a name of docs/hashing.md, or ""', empty=True)
_COPIES = ("redis", "memcache")

LEVEL: tuple[Setting, ...] = (
    Setting("level", "storage", Choice(KINDS), REQUIRED,
            "what the servers are"),
    Setting("level", "servers", _SERVERS, REQUIRED,
            "the servers; their order is part of where keys live. An alias takes the address's place in a hash ring, "
            "so that a server can move without moving its keys", but=(LOCAL,)),
    Setting("level", "max_bytes", Size(64 * KIB, 1024 * GIB), "32MB",
            "memory that the copies may take in each worker", only=(LOCAL,)),
    Setting("level", "hash", _HASH, "",
            "the hash function of keys; the default belongs to the distribution: fnv1a_64 for ketama, as in twemproxy",
            only=PLACED),
    Setting("level", "distribution", _DISTRIBUTION, "ketama",
            "how a hash chooses a server; the default is twemproxy's", only=PLACED),
    Setting("level", "hash_tag", _TAG, "",
            "two characters; only what a key has between them is hashed, so that keys can be kept together",
            only=PLACED),
    Setting("level", "connections", Integer(1, 64), 1,
            "connections per worker, server and database in use, besides those of blocking, MULTI and listening "
            "clients; one carries the requests of all clients, more help where single replies are very large",
            only=PIPELINED),
    Setting("level", "max_connections", Integer(1, 1024), 8,
            "connections that a worker opens to a server at most; each carries one request at a time, further ones "
            "wait for it up to queue_ms", only=SQL),
    Setting("level", "username", SECRET, "",
            "the user name given to the servers with the password; a mysql level must have one", only=LOGIN),
    Setting("level", "password", SECRET, "",
            "the password given to the servers; empty: none is given", only=LOGIN),
    Setting("level", "db", Integer(0, 65_535), 0,
            "the servers' database that a client's database 0 stands for; its database n is db + n there", only=REDIS),
    Setting("level", "max_pending_bytes", Size(64 * KIB, 64 * GIB), "16MB",
            "requests that may wait for one server in one worker; beyond it their clients are not read from",
            only=PIPELINED),
    Setting("level", "dns_ttl_s", seconds(1, DAY_S), 30,
            "how often a host name is resolved again, beside the requests; if that fails the last address is kept",
            only=NETWORK),
    Setting("level", "lushan_db", LushanRule(), None,
            "the rule by which the database of a key is found; a lushan level must have one", only=("lushan",)),
    Setting("level", "on_miss", names("next", "fail"), "next",
            "what a key that this level does not have means: the next one is asked, or the client has a miss",
            only=CACHES),
    Setting("level", "on_error", names("next", "fail"), "next",
            "what happens when a server of this level does not answer: the next level is asked, or the client is told",
            only=CACHES),
    Setting("level", "write", names("invalidate", "through", "around", "behind"), "invalidate",
            "what a write does to this level above another: its copy goes; it gets the new value; nothing; or it gets "
            "the new value and the levels below get it later", only=_COPIES),
    Setting("level", "read_only", Switch(), False,
            "this level is filled by others: nothing is added, marked or emptied there. A lushan level always is so",
            only=_COPIES),
    Setting("level", "optional", Switch(), False,
            "this level is passed by when it has not answered within deadline_ms", only=CACHES),
    Setting("level", "deadline_ms", MS, 20,
            "how long an optional level is waited for, connecting included", only=CACHES),
    Setting("level", "max_behind_bytes", Size(64 * KIB, 64 * GIB), "16MB",
            'keys and values that wait for the level below, where write is "behind"; further writes wait for it',
            only=_COPIES),
    Setting("level", "writers", _WRITERS, [],
            "the servers that take the writes, one for each of `servers`, by position, which then only read; empty: "
            "servers take both", only=SQL),
    Setting("level", "max_lag_s", seconds(0, DAY_S), 0,
            "how far one of `servers`, or a replica, may be behind its writer or master; while it is further, or its "
            "replication does not run, it is not read from. 0: no lag is too great", only=(*SQL, *REDIS)),
    Setting("level", "heartbeat", HeartbeatRule(), {},
            "the table in which the time is written at the writers, and that says how far a server is behind; without "
            "it the servers are asked (SHOW REPLICA STATUS)", only=SQL),
    Setting("level", "years", YearsRule(), {},
            "other servers for the rows of some years, where tables are chosen by the date in keys", only=SQL),
    Setting("level", "database", _DATABASE, "",
            "the database of the connections; a table may be named with its own", only=SQL),
    Setting("level", "table", TableRule(), None,
            "the table, and which of its columns hold what; a mysql level must have one", only=SQL),
    Setting("level", "where", WhereRule(), {},
            "columns that have this value in every row that is read and written; other rows are left alone",
            only=SQL),
    Setting("level", "route", RouteRule(), None,
            "which of the pools, and of the servers above, a request goes to; without it, to the servers above",
            only=PIPELINED),
    Setting("level", "topology", names("servers", "cluster", "sentinel"), "servers",
            "what `servers` are: those that have the keys; some of a redis cluster, which tell of all; or sentinels, "
            "which tell where the masters are", only=REDIS),
    Setting("level", "masters", _MASTERS, [],
            "the names under which the sentinels know the masters; keys are spread over them by these names, in this "
            "order", only=REDIS),
    Setting("level", "sentinel_username", SECRET, "",
            "the user name given to the sentinels with their password", only=REDIS),
    Setting("level", "sentinel_password", SECRET, "",
            "the password given to the sentinels; empty: none is given. That of the masters is `password`", only=REDIS),
    Setting("level", "reads", names("master", "replica", "prefer_replica"), "master",
            "where reads go, in a cluster or under sentinels: to masters; to replicas only; or to replicas, and to the "
            "master while it has none that is fit", only=REDIS),

    Setting("pool", "name", NAME, REQUIRED,
            "the name in the route; the level's own servers are the pool main", only=PIPELINED),
    Setting("pool", "servers", _POOL_SERVERS, REQUIRED,
            "its servers; their order is part of where keys live"),
    Setting("pool", "distribution", _ANY_DISTRIBUTION, "",
            "how a hash chooses a server; empty: as in the level, with its hash"),
    Setting("pool", "hash", _HASH, "",
            "the hash function of keys, where the pool has a distribution of its own"),

    Setting("rooms", "prefer", names("first", "second", "local"), "first",
            "the room that serves while it can: the one before or after '----', or the one that has servers on a "
            "network of this machine", only=PIPELINED),
    Setting("rooms", "writes", names("single", "mirror"), "single",
            "where writes go: to the room that serves, and nothing is copied to the other; or to both, and what one "
            "has missed is copied before it serves again", only=("redis", "memcache")),
    Setting("rooms", "on_return", names("keep", "empty"), "keep",
            "what becomes of what a server holds that did not get the last writes, where writes go to a single room: "
            "it is kept, or removed before the server serves again. A level above another always removes it",
            only=PIPELINED),
    Setting("rooms", "interval_ms", MS, 100,
            "how often every server is asked for a sign of life", only=PIPELINED),
    Setting("rooms", "failures", Integer(1, 100), 2,
            "of questions for a sign of life, or of requests, in a row: its peer serves then", only=PIPELINED),
    Setting("rooms", "hold_s", seconds(0, 3600), 2,
            "for how long a server must have answered every time before it serves again", only=PIPELINED),
    Setting("rooms", "folder", FilePath(), "",
            "the folder for what must not be forgotten: which server has missed what; empty: in memory, until the "
            "fleet ends", only=PIPELINED),
    Setting("rooms", "max_journal", Size(64 * KIB, 64 * GIB), "64MB",
            'names of keys that one server may miss where writes = "mirror"; with more it is emptied, and all keys are '
            "copied to it", only=("redis", "memcache")),
    Setting("rooms", "sync", names("no", "yes"), "no",
            "whether a missed write is on the disk before its client is answered; no: a crash of the whole machine may "
            "lose the last ones, a crash of the proxy does not", only=("redis", "memcache")),

    Setting("timeout", "connect_ms", MS, 50,
            "to open a connection; to log in then has read_ms", only=NETWORK),
    Setting("timeout", "read_ms", MS, 200,
            "from sending a request to its answer; only this one counts against the server. For sqlite: that another "
            "process may hold the file. For mysql: of each statement", but=(LOCAL,)),
    Setting("timeout", "queue_ms", MS, 200,
            "that a request may wait in the proxy before it is sent", but=(LOCAL,)),

    Setting("backoff", "base_ms", MS, 50, "the first pause", only=NETWORK),
    Setting("backoff", "max_ms", MS, 5000, "the longest pause", only=NETWORK),
)  # fmt: skip
