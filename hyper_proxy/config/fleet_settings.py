"""The settings of the fleet as a whole, of its sidecar and of its log."""

from __future__ import annotations

from hyper_proxy.common.log_lines import FORMS
from hyper_proxy.config.checks import Address, FilePath, Integer, Number, Size, Switch, Text, seconds
from hyper_proxy.config.model import GIB, KIB
from hyper_proxy.config.plugin_files import PluginList
from hyper_proxy.config.setting import DAY_S, HOUR_MS, SECRET, Setting, names

_ACCOUNT = Text(r"(?:[A-Za-z_][A-Za-z0-9_.-]{0,31})?", "a name of the system's accounts, or ''")

FLEET: tuple[Setting, ...] = (
    Setting("proxy", "workers", Integer(0, 1024), 0,
            "worker processes; 0 means one for each core", hot=False),
    Setting("proxy", "scheduling", names("batch", "normal"), "batch",
            "how the kernel shares out busy cores to the workers: batch lets them serve more requests at a time"),
    Setting("proxy", "drain_timeout_s", seconds(0, DAY_S), 30,
            "how long a stopping worker lets its clients finish"),
    Setting("proxy", "prepare_timeout_s", seconds(0.1, 3600), 10,
            "how long a reload waits for every worker's yes; after it the old configuration stays"),
    Setting("proxy", "max_memory", Size(0, 1024 * GIB), 0,
            "memory of all workers together; each has an equal part, at least 128MB. A worker above it takes in less: "
            "it refuses new clients and drops large replies. 0 means half of what the machine or its container has"),
    Setting("proxy", "hang_timeout_s", seconds(1, 3600), 10,
            "how long a worker or the sidecar may be stuck before it shows its stack, is killed and replaced"),
    Setting("proxy", "upgrade_timeout_s", seconds(0.1, 3600), 30,
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
    Setting("admin", "token", SECRET, "",
            "what every POST must give as Authorization: Bearer TOKEN; empty: POST is accepted from this machine only"),
    Setting("admin", "show_keys", Switch(), False,
            "slow log, hot and large keys, faults of plug-ins: show the keys themselves; else their digest, which "
            "explain tells of a key"),

    Setting("log", "file", FilePath(), "",
            'the log file; "" is standard error, which suits the journal of systemd and containers'),
    Setting("log", "level", names("debug", "info", "warning", "error"), "info",
            "the least serious events that are logged"),
    Setting("log", "format", names(*FORMS), "text",
            "the form of a line: time, level, event and key=value, or one JSON object"),
    Setting("log", "roll", names("size", "hour", "day", "none"), "size",
            "when a new file is begun"),
    Setting("log", "max_bytes", Size(64 * KIB, 1024 * GIB), "100MB",
            "the size at which a new file is begun, where roll is size"),
    Setting("log", "keep", Integer(0, 10_000), 10,
            "rolled files that are kept; the proxy deletes older ones itself"),
    Setting("log", "slow_ms", Integer(0, HOUR_MS), 100,
            "requests that take as long are recorded, with where their time went; 0: none is"),
    Setting("log", "access_sample", Number(0, 1), 0,
            "the share of all requests that is logged in the same form"),
)  # fmt: skip
