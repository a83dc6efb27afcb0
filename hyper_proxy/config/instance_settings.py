"""The settings of an instance: its clients, what each may ask for, and how copies are kept between its levels."""

from __future__ import annotations

from hyper_proxy.config.checks import Choice, Integer, Number, Size, Strings, Switch, command_item, listen_item, seconds
from hyper_proxy.config.kinds import BUILT_IN, PROTOCOLS
from hyper_proxy.config.model import GIB, KIB, MIB
from hyper_proxy.config.place import REQUIRED
from hyper_proxy.config.setting import DAY_S, HOUR_MS, MS, NAME, REDIS, SECRET, ByProtocol, Setting, names

_LISTEN = Strings(listen_item, '"host:port" or "unix:/path"')

INSTANCE: tuple[Setting, ...] = (
    Setting("instance", "name", NAME, REQUIRED,
            "the name in statistics, logs and errors"),
    Setting("instance", "protocol", Choice(PROTOCOLS, ("mysql",)), REQUIRED,
            "what the clients speak"),
    Setting("instance", "listen", _LISTEN, REQUIRED,
            "the addresses clients connect to"),
    Setting("instance", "allow", Strings(command_item, "names of commands", empty=True), [],
            "dangerous commands that are served all the same: FLUSHALL, KEYS, flush_all ...; refused by default, "
            "since one of them can empty or block every server"),
    Setting("instance", "on_partial", names("error", "nil", "element"), "error",
            "the answer to a multi-key read when some servers fail: an error for the whole, a miss for their keys, "
            "or an error in the place of each of their keys"),
    Setting("instance", "username", SECRET, "",
            "the user name that clients give with the password; empty: the one redis calls default", only=REDIS),
    Setting("instance", "password", SECRET, "",
            "what clients must give with AUTH or HELLO; empty: nothing is asked", only=REDIS),
    Setting("instance", "dbs", Integer(1, 65_536), 16,
            "how many databases SELECT accepts; no more than the `databases` of the servers, less the level's `db`",
            only=REDIS),

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
    Setting("limits", "idle_timeout_s", seconds(0, 365 * DAY_S), 0,
            "silence after which a client is closed; 0 means never"),
    Setting("limits", "write_timeout_ms", Integer(1, 24 * HOUR_MS), 60_000,
            "a client that takes no byte of its replies for so long is closed"),

    Setting("write_back", "ttl", seconds(1, 365 * DAY_S), 300,
            "how many seconds a copy stays in a level above; an item that ends sooner takes its copy with it"),
    Setting("write_back", "jitter", Number(0, 0.9), 0.1,
            "by which share of itself the ttl is longer or shorter, at random, so that copies made together do not all "
            "end together"),
    Setting("write_back", "negative_ttl", seconds(0, 365 * DAY_S), 0,
            "how many seconds a level above keeps that there is no such key, at least one; writes through the proxy "
            "end it at once. 0: it is not kept, so every read of a key that is not there goes down to the last level"),
    Setting("write_back", "refresh", Switch(), True,
            "a copy that is asked for very often is fetched anew from below shortly before it ends"),
    Setting("write_back", "max_below", Integer(0, 65_536), 0,
            "reads of one worker that are under way to the last level at once; further ones wait, so that caches which "
            "have lost everything do not bury it. 0: as many as the level has connections, at least 16"),
    Setting("write_back", "below_wait_ms", MS, 1000,
            "that a read waits for its turn at the last level; then its client gets an error"),
)  # fmt: skip
