"""The one table of settings: what can be written in a configuration file, and what holds when it is not written.

The reader, the suggestions for misspelt keys, the reference in docs/configuration.md and the test of
etc/hyper_proxy.toml follow this table. A new setting is one row here, one field in model.py and one line in the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyper_proxy.common.log_lines import FORMS
from hyper_proxy.config.ask import distribution_fault, hash_fault
from hyper_proxy.config.checks import (
    REQUIRED as REQUIRED,
)
from hyper_proxy.config.checks import (
    Address,
    Choice,
    FilePath,
    Integer,
    Kind,
    Known,
    Seconds,
    Share,
    Size,
    Strings,
    Switch,
    Text,
    command_item,
    listen_item,
    master_item,
)
from hyper_proxy.config.lushan_rule import LushanRule
from hyper_proxy.config.model import GIB, KIB, MIB
from hyper_proxy.config.plugin_files import PluginList
from hyper_proxy.config.routes import RouteRule
from hyper_proxy.config.table_rule import HeartbeatRule, TableRule, WhereRule
from hyper_proxy.config.years_rule import YearsRule

HOUR_MS = 3_600_000
DAY_S = 86_400

# The lists are those that plug-ins add their names to (hyper_proxy/plugin.py).
PROTOCOLS = ["redis", "memcache", "http"]
STORAGES = {
    "redis": ["redis", "memcache", "sqlite", "mysql"],
    "memcache": ["memcache", "lushan", "redis", "sqlite", "mysql"],
    "http": ["redis", "memcache", "sqlite", "mysql"],
}
"""The storages that can serve each protocol."""
CACHES = ("redis", "memcache", "lushan")
"""The storages that can stand above another level."""
KNOWING = ["redis", "memcache", "sqlite", "mysql"]
"""The storages that can be the last of several levels: what they say is so."""
NETWORK = ("redis", "memcache", "lushan", "mysql")
"""Storages that are servers at addresses; sqlite is a file."""
LOCAL = "local"
"""Copies in the worker's own memory: the first of several levels, and no server."""
KINDS = [*NETWORK, "sqlite", LOCAL]
"""All storages."""
PLACED = [*NETWORK]
"""Storages over whose servers keys are spread."""
FILES = ["sqlite"]
"""Storages whose servers are paths of files or folders."""
BUILT_IN = tuple(PROTOCOLS)
PIPELINED = ("redis", "memcache", "lushan")
"""Storages whose connections carry the requests of many clients at once."""
SQL = ("mysql",)
"""Storages that are tables of a SQL server."""


@dataclass(frozen=True, slots=True)
class ByProtocol:
    """A default that depends on the instance's protocol."""

    values: dict[str, object]

    def of(self, protocol: object) -> object:
        """That of a protocol; one that is not built in has redis'."""
        return self.values.get(str(protocol), next(iter(self.values.values())))


@dataclass(frozen=True, slots=True)
class Section:
    """A table of the file, in the section `parent`; `many` says that it is written [[section]], once or more, or not
    at all where it is not `needed`."""

    parent: str
    key: str
    help: str
    many: bool = False
    needed: bool = True


SECTIONS: dict[str, Section] = {
    "proxy": Section("", "proxy", "The fleet as a whole."),
    "admin": Section("", "admin", "The sidecar, which answers /stats, /metrics, /health and POST /reload."),
    "log": Section("", "log", "The log of all processes."),
    "instance": Section("", "instance", "A front: a protocol on some addresses, and the storage behind it.", many=True),
    "limits": Section("instance", "limits", "What one client of the instance may ask for."),
    "write_back": Section("instance", "write_back", "How what a lower level found is kept in the levels above it."),
    "level": Section("instance", "level", "The storage, and how keys are spread over its servers.", many=True),
    "pool": Section(
        "level", "pool", "Further servers that the level's route may send requests to.", many=True, needed=False
    ),
    "rooms": Section("level", "rooms", "How the rooms on both sides of '----' in servers stand in for each other."),
    "timeout": Section("level", "timeout", "Deadlines towards one server, each counted apart."),
    "backoff": Section("level", "backoff", "The pause before a lost server is dialled again: doubled, with jitter."),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of one section.

    `default` is the value as it would be written in toml. hot: a reload applies it to the workers that run, else it
    starts new ones in their place, or refuses: then it takes a `restart`.
    `only` names the protocols (of an instance) or storages (of a level) for which the key has a meaning; empty: all but
    those of `but`.
    """

    section: str
    key: str
    kind: Kind
    default: object
    help: str
    hot: bool = True
    restart: bool = False
    only: Sequence[str] = ()
    but: Sequence[str] = ()

    def fits(self, kind: str) -> bool:
        """Has the key a meaning for this protocol or storage?"""
        return kind in self.only if self.only else kind not in self.but


_NAME = Text(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a word of letters, digits, '_', '.' and '-', at most 64 long")
_SECRET = Text(r"[^\x00-\x1f\x7f]{0,512}", "at most 512 characters, none of them a control character", secret=True)
_ACCOUNT = Text(r"(?:[A-Za-z_][A-Za-z0-9_.-]{0,31})?", "a name of the system's accounts, or ''")
_TAG = Text(r"(?:[!-~]{2})?", "two visible ASCII characters such as '{}', or '' for none")
_MS = Integer(1, HOUR_MS)
_LISTEN = Strings(listen_item, '"host:port" or "unix:/path"')
_SERVERS = Strings(
    str, '"host:port[:weight][ alias]" or "unix:/path[:weight][ alias]"; for sqlite one "path/of/file.db"'
)
_WRITERS = Strings(str, '"host:port[ alias]" or "unix:/path[ alias]"', empty=True)
_MASTERS = Strings(master_item, "names of masters", empty=True)
_DATABASE = Text(r"[A-Za-z0-9_$-]{0,64}", "a name of at most 64 letters, digits, '_', '$' and '-', or ''")
_HASH = Known(hash_fault, 'string: a name of docs/hashing.md, or "" for the default of the distribution')
_DISTRIBUTION = Known(distribution_fault, "string: a name of docs/hashing.md")
_ANY_DISTRIBUTION = Known(distribution_fault, 'string: a name of docs/hashing.md, or ""', empty=True)
_ON = ("redis",)
LOGIN = ["redis", "mysql"]
"""Storages whose servers can ask for a password."""
_COPIES = ("redis", "memcache")


def _names(*names: str, later: tuple[str, ...] = ()) -> Choice:
    return Choice(names, later)


SETTINGS: tuple[Setting, ...] = (
    Setting("proxy", "workers", Integer(0, 1024), 0,
            "worker processes; 0 means one for each core", hot=False),
    Setting("proxy", "scheduling", _names("batch", "normal"), "batch",
            "how the kernel shares out busy cores to the workers: batch lets them serve more requests at a time"),
    Setting("proxy", "drain_timeout_s", Seconds(0, DAY_S), 30,
            "how long a stopping worker lets its clients finish"),
    Setting("proxy", "prepare_timeout_s", Seconds(0.1, 3600), 10,
            "how long a reload waits for every worker's yes; after it the old configuration stays"),
    Setting("proxy", "max_memory", Size(0, 1024 * GIB), 0,
            "memory of all workers together; each has an equal part, at least 128MB. A worker above it takes in less: "
            "it refuses new clients and drops large replies. 0 means half of what the machine or its container has"),
    Setting("proxy", "hang_timeout_s", Seconds(1, 3600), 10,
            "how long a worker or the sidecar may be stuck before it shows its stack, is killed and replaced"),
    Setting("proxy", "upgrade_timeout_s", Seconds(0.1, 3600), 30,
            "how long an upgrade (USR2) waits for the new program; after it the running one stays"),
    Setting("proxy", "user", _ACCOUNT, "",
            "whom the fleet becomes when its ports are bound, which takes a start as root; empty: whoever starts it",
            hot=False, restart=True),
    Setting("proxy", "group", _ACCOUNT, "",
            "the first group of that user; empty: the user's own. Its other groups come along",
            hot=False, restart=True),
    Setting("proxy", "plugins", PluginList(), [],
            "protocols, storages, hashes and distributions of others, which the workers load; a reload also sees that "
            "their code has changed", hot=False),
    Setting("proxy", "pidfile", FilePath(), "",
            'the file with the master\'s pid, locked while it lives; "" is none, which suits systemd and containers',
            hot=False, restart=True),

    Setting("admin", "listen", Address(), "127.0.0.1:22122",
            "where the sidecar listens; whoever reaches it can read statistics, slow log and names of keys"),
    Setting("admin", "token", _SECRET, "",
            "what every POST must give as Authorization: Bearer TOKEN; empty: POST is accepted from this machine only"),
    Setting("admin", "show_keys", Switch(), False,
            "slow log, hot and large keys: show the keys themselves; else their digest, which explain tells of a key"),

    Setting("log", "file", FilePath(), "",
            'the log file; "" is standard error, which suits the journal of systemd and containers'),
    Setting("log", "level", _names("debug", "info", "warning", "error"), "info",
            "the least serious events that are logged"),
    Setting("log", "format", _names(*FORMS), "text",
            "the form of a line: time, level, event and key=value, or one JSON object"),
    Setting("log", "roll", _names("size", "hour", "day", "none"), "size",
            "when a new file is begun"),
    Setting("log", "max_bytes", Size(64 * KIB, 1024 * GIB), "100MB",
            "the size at which a new file is begun, where roll is size"),
    Setting("log", "keep", Integer(0, 10_000), 10,
            "rolled files that are kept; the proxy deletes older ones itself"),
    Setting("log", "slow_ms", Integer(0, HOUR_MS), 100,
            "requests that take as long are recorded, with where their time went; 0: none is"),
    Setting("log", "access_sample", Share(), 0,
            "the share of all requests that is logged in the same form"),

    Setting("instance", "name", _NAME, REQUIRED,
            "the name in statistics, logs and errors"),
    Setting("instance", "protocol", Choice(PROTOCOLS, ("mysql",)), REQUIRED,
            "what the clients speak"),
    Setting("instance", "listen", _LISTEN, REQUIRED,
            "the addresses clients connect to"),
    Setting("instance", "allow", Strings(command_item, "names of commands", empty=True), [],
            "dangerous commands that are served all the same: FLUSHALL, KEYS, flush_all ...; refused by default, "
            "since one of them can empty or block every server"),
    Setting("instance", "on_partial", _names("error", "nil", "element"), "error",
            "the answer to a multi-key read when some servers fail: an error for the whole, a miss for their keys, "
            "or an error in the place of each of their keys"),
    Setting("instance", "username", _SECRET, "",
            "the user name that clients give with the password; empty: the one redis calls default", only=_ON),
    Setting("instance", "password", _SECRET, "",
            "what clients must give with AUTH or HELLO; empty: nothing is asked", only=_ON),
    Setting("instance", "dbs", Integer(1, 65_536), 16,
            "how many databases SELECT accepts", only=_ON),

    Setting("limits", "max_key_bytes", Size(1, 512 * MIB),
            ByProtocol({"redis": "512MB", "memcache": 250, "http": "8KB"}),
            "the longest key; the protocols' own limits"),
    Setting("limits", "max_value_bytes", Size(1, 4 * GIB),
            ByProtocol({"redis": "512MB", "memcache": "1MB", "http": "16MB"}),
            "the longest value, or argument that is no key, or body; the servers' own defaults"),
    Setting("limits", "max_arguments", Integer(16, 2**31 - 1), 1_048_576,
            "words of one request, the command included"),
    Setting("limits", "max_request_bytes", Size(64 * KIB, 16 * GIB), "1GB",
            "one request that is not whole yet; a client that sends more is closed, as by redis"),
    Setting("limits", "max_pipeline", Integer(1, 1_000_000), 1024,
            "requests of one client that are under way at once; further ones wait unread, none is refused"),
    Setting("limits", "max_clients", Integer(1, 1_000_000), 8192,
            "connections of the instance in one worker; further ones are told so and closed"),
    Setting("limits", "max_line_bytes", Size(512, 512 * MIB),
            ByProtocol({"redis": "64KB", "memcache": "1MB", "http": "64KB"}),
            "the longest line: an inline command of redis, the first line of a memcache request, an HTTP head",
            only=BUILT_IN),
    Setting("limits", "idle_timeout_s", Seconds(0, 365 * DAY_S), 0,
            "silence after which a client is closed; 0 means never"),
    Setting("limits", "write_timeout_ms", Integer(1, 24 * HOUR_MS), 60_000,
            "a client that takes no byte of its replies for so long is closed"),

    Setting("write_back", "ttl", Seconds(1, 365 * DAY_S), 300,
            "how many seconds a copy stays in a level above; an item that ends sooner takes its copy with it"),
    Setting("write_back", "jitter", Seconds(0, 0.9), 0.1,
            "by which share of itself the ttl is longer or shorter, at random, so that copies made together do not all "
            "end together"),
    Setting("write_back", "negative_ttl", Seconds(0, 365 * DAY_S), 0,
            "how many seconds a level above keeps that there is no such key, at least one; writes through the proxy "
            "end it at once. 0: it is not kept, so every read of a key that is not there goes down to the last level"),
    Setting("write_back", "refresh", Switch(), True,
            "a copy that is asked for very often is fetched anew from below shortly before it ends"),
    Setting("write_back", "max_below", Integer(0, 65_536), 0,
            "reads of one worker that are under way to the last level at once; further ones wait, so that caches which "
            "have lost everything do not bury it. 0: as many as the level has connections, at least 16"),
    Setting("write_back", "below_wait_ms", _MS, 1000,
            "that a read waits for its turn at the last level; then its client gets an error"),

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
    Setting("level", "username", _SECRET, "",
            "the user name given to the servers with the password; a mysql level must have one", only=LOGIN),
    Setting("level", "password", _SECRET, "",
            "the password given to the servers; empty: none is given", only=LOGIN),
    Setting("level", "db", Integer(0, 65_535), 0,
            "the servers' database that a client's database 0 stands for; its database n is db + n there", only=_ON),
    Setting("level", "max_pending_bytes", Size(64 * KIB, 64 * GIB), "16MB",
            "requests that may wait for one server in one worker; beyond it their clients are not read from",
            only=PIPELINED),
    Setting("level", "dns_ttl_s", Seconds(1, DAY_S), 30,
            "how often a host name is resolved again, beside the requests; if that fails the last address is kept",
            only=NETWORK),
    Setting("level", "lushan_db", LushanRule(), None,
            "the rule by which the database of a key is found; a lushan level must have one", only=("lushan",)),
    Setting("level", "on_miss", _names("next", "fail"), "next",
            "what a key that this level does not have means: the next one is asked, or the client has a miss",
            only=CACHES),
    Setting("level", "on_error", _names("next", "fail"), "next",
            "what happens when a server of this level does not answer: the next level is asked, or the client is told",
            only=CACHES),
    Setting("level", "write", _names("invalidate", "through", "around", "behind"), "invalidate",
            "what a write does to this level above another: its copy goes; it gets the new value; nothing; or it gets "
            "the new value and the levels below get it later", only=_COPIES),
    Setting("level", "read_only", Switch(), False,
            "this level is filled by others: nothing is added, marked or emptied there. A lushan level always is so",
            only=_COPIES),
    Setting("level", "optional", Switch(), False,
            "this level is passed by when it has not answered within deadline_ms", only=CACHES),
    Setting("level", "deadline_ms", _MS, 20,
            "how long an optional level is waited for, connecting included", only=CACHES),
    Setting("level", "max_behind_bytes", Size(64 * KIB, 64 * GIB), "16MB",
            'keys and values that wait for the level below, where write is "behind"; further writes wait for it',
            only=_COPIES),
    Setting("level", "writers", _WRITERS, [],
            "the servers that take the writes, one for each of `servers`, by position, which then only read; empty: "
            "servers take both", only=SQL),
    Setting("level", "max_lag_s", Seconds(0, DAY_S), 0,
            "how far one of `servers`, or a replica, may be behind its writer or master; while it is further, or its "
            "replication does not run, it is not read from. 0: no lag is too great", only=(*SQL, *_ON)),
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
    Setting("level", "topology", _names("servers", "cluster", "sentinel"), "servers",
            "what `servers` are: those that have the keys; some of a redis cluster, which tell of all; or sentinels, "
            "which tell where the masters are", only=_ON),
    Setting("level", "masters", _MASTERS, [],
            "the names under which the sentinels know the masters; keys are spread over them by these names, in this "
            "order", only=_ON),
    Setting("level", "sentinel_username", _SECRET, "",
            "the user name given to the sentinels with their password", only=_ON),
    Setting("level", "sentinel_password", _SECRET, "",
            "the password given to the sentinels; empty: none is given. That of the masters is `password`", only=_ON),
    Setting("level", "reads", _names("master", "replica", "prefer_replica"), "master",
            "where reads go, in a cluster or under sentinels: to masters; to replicas only; or to replicas, and to the "
            "master while it has none that is fit", only=_ON),

    Setting("pool", "name", _NAME, REQUIRED,
            "the name in the route; the level's own servers are the pool main", only=PIPELINED),
    Setting("pool", "servers", _SERVERS, REQUIRED,
            "its servers; their order is part of where keys live", only=PIPELINED),
    Setting("pool", "distribution", _ANY_DISTRIBUTION, "",
            "how a hash chooses a server; empty: as in the level, with its hash", only=PIPELINED),
    Setting("pool", "hash", _HASH, "",
            "the hash function of keys, where the pool has a distribution of its own", only=PIPELINED),

    Setting("rooms", "prefer", _names("first", "second", "local"), "first",
            "the room that serves while it can: the one before or after '----', or the one that has servers on a "
            "network of this machine", only=PIPELINED),
    Setting("rooms", "writes", _names("single", "mirror"), "single",
            "where writes go: to the room that serves, and nothing is copied to the other; or to both, and what one "
            "has missed is copied before it serves again", only=("redis", "memcache")),
    Setting("rooms", "on_return", _names("keep", "empty"), "keep",
            "what becomes of what a server holds that did not get the last writes, where writes go to a single room: "
            "it is kept, or removed before the server serves again. A level above another always removes it",
            only=PIPELINED),
    Setting("rooms", "interval_ms", _MS, 100,
            "how often every server is asked for a sign of life", only=PIPELINED),
    Setting("rooms", "failures", Integer(1, 100), 2,
            "of signs of life, or of connections, in a row: its peer serves then", only=PIPELINED),
    Setting("rooms", "hold_s", Seconds(0, 3600), 2,
            "for how long a server must have answered every time before it serves again", only=PIPELINED),
    Setting("rooms", "folder", FilePath(), "",
            "the folder for what must not be forgotten: which server has missed what; empty: in memory, until the "
            "fleet ends", only=PIPELINED),
    Setting("rooms", "max_journal", Size(64 * KIB, 64 * GIB), "64MB",
            'names of keys that one server may miss where writes = "mirror"; with more it is emptied, and all keys are '
            "copied to it", only=("redis", "memcache")),
    Setting("rooms", "sync", _names("no", "yes"), "no",
            "whether a missed write is on the disk before its client is answered; no: a crash of the whole machine may "
            "lose the last ones, a crash of the proxy does not", only=("redis", "memcache")),

    Setting("timeout", "connect_ms", _MS, 50,
            "to open a connection; to log in then has read_ms", only=NETWORK),
    Setting("timeout", "read_ms", _MS, 200,
            "from sending a request to its answer; only this one counts against the server. For sqlite: that another "
            "process may hold the file. For mysql: of each statement", but=(LOCAL,)),
    Setting("timeout", "queue_ms", _MS, 200,
            "that a request may wait in the proxy before it is sent", but=(LOCAL,)),

    Setting("backoff", "base_ms", _MS, 50, "the first pause", only=NETWORK),
    Setting("backoff", "max_ms", _MS, 5000, "the longest pause", only=NETWORK),
)  # fmt: skip

def keys_of(section: str) -> dict[str, Setting]:
    """The settings of a section by key, in the order of the table."""
    return {setting.key: setting for setting in SETTINGS if setting.section == section}


def sections_in(parent: str) -> dict[str, str]:
    """Key to section name, of the sections that stand directly in `parent` ("" is the file itself)."""
    return {section.key: name for name, section in SECTIONS.items() if section.parent == parent}


def name_of(section: str) -> str:
    """The section's full name in a file: instance.level.timeout."""
    row = SECTIONS[section]
    return f"{name_of(row.parent)}.{row.key}" if row.parent else row.key


def header_of(section: str) -> str:
    """How the section is headed in a file: [log], [[instance]], [instance.limits]."""
    return f"[[{name_of(section)}]]" if SECTIONS[section].many else f"[{name_of(section)}]"
