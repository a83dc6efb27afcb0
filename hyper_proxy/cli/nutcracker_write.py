"""Writes pools of twemproxy as a configuration of this proxy: the same keys on the same servers, and a comment wherever
something has another meaning here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import toml

from hyper_proxy.cli.nutcracker_read import Pool, PoolServer
from hyper_proxy.config.addresses import read_listen
from hyper_proxy.config.model import MAIN
from hyper_proxy.config.setting import HOUR_MS

MAX_CONNECTIONS = 64
MAX_CLIENTS = 1_000_000
PATIENCE_MS = {"connect_ms": 1000, "read_ms": 10_000, "queue_ms": 10_000}
"""Deadlines for a pool that had none: long enough for what such a pool is used to, but an end to a hung server."""
ADMIN_PORTS = range(22122, 65536, 100)
"""The sidecar's own port, and others for when a pool listens there."""
RING = "ketama"
ORDER_MATTERS = {
    "modula": "keys are dealt out in it",
    "ketama": "where two servers have the same point in the ring, the first of them gets its keys",
}
"""What the order of the servers decides in a distribution; in the other, random, it decides nothing."""

Table = dict[str, Any]


def write_toml(pools: Sequence[Pool], source: str) -> str:
    """The text of the file; the caller checks it."""
    names = _instance_names(pools)
    head = [
        _comment(f"Made by hyper-proxy import nutcracker {source}"),
        "# Every key is on the server where twemproxy put it. Comments say what has another meaning here.",
        "",
        *_admin(pools),
    ]
    body = [line for pool, name in zip(pools, names, strict=True) for line in _instance(pool, name)]
    return "\n".join(head + body).rstrip("\n") + "\n"


def _instance_names(pools: Sequence[Pool]) -> list[str]:
    """Pool names as instance names: all different, anything but letters, digits, '_', '.' and '-' made '_'."""
    names: list[str] = []
    for pool in pools:
        plain = name = re.sub(r"^[^A-Za-z0-9_]|[^A-Za-z0-9_.-]", "_", pool.name)[:50] or "_"
        number = 1
        while name in names:
            number += 1
            name = f"{plain}_{number}"
        names.append(name)
    return names


def _admin(pools: Sequence[Pool]) -> list[str]:
    """The sidecar on another port when a pool has its own."""
    taken = {read_listen(pool.values["listen"]).port for pool in pools}
    port = next(port for port in ADMIN_PORTS if port not in taken)
    if port == ADMIN_PORTS[0]:
        return [
            "# Statistics, health and reload, which twemproxy had at its -a and -s. No password: keep it on loopback.",
            "#[admin]",
            f'#listen = "127.0.0.1:{port}"',
            "",
        ]
    return [
        f"# A pool listens on {ADMIN_PORTS[0]}, the sidecar's usual port (hyper-proxy ctl --admin 127.0.0.1:{port}).",
        *_table("[admin]", {"listen": f"127.0.0.1:{port}"}),
    ]


def _instance(pool: Pool, name: str) -> list[str]:
    values = pool.values
    kind = "redis" if values["redis"] else "memcache"
    front: Table = {"name": name, "protocol": kind, "listen": [values["listen"]]}
    level: Table = {"storage": kind, "hash": values["hash"], "distribution": values["distribution"]}
    if values["hash_tag"]:
        level["hash_tag"] = values["hash_tag"]
    if values["auto_eject_hosts"]:
        level["route"] = {"eject": MAIN}
    if values["server_connections"] > 1:
        level["connections"] = min(values["server_connections"], MAX_CONNECTIONS)
    if values["redis_auth"]:
        front["password"] = level["password"] = values["redis_auth"]
    if kind == "redis":
        front["dbs"] = 1
        level["db"] = values["redis_db"]
    notes = [_comment(f"  {line}") for note in NOTES for line in note(pool, name)]
    lines = [_comment(f"pool {pool.name}, line {pool.line}"), *notes, *_table("[[instance]]", front)]
    if values["client_connections"]:
        clients = min(values["client_connections"], MAX_CLIENTS)
        lines += _table("[instance.limits]", {"max_clients": clients})
    lines += [*_table("[[instance.level]]", level)[:-1], *_servers(pool)]
    return [*lines, *_table("[instance.level.timeout]", _timeout(pool))]


def _timeout(pool: Pool) -> Table:
    if not pool.values["timeout"]:
        return dict(PATIENCE_MS)
    return dict.fromkeys(PATIENCE_MS, min(pool.values["timeout"], HOUR_MS))


def _comment(text: str) -> str:
    """One line, whatever is in the names it mentions."""
    return "# " + "".join(char if char.isprintable() else "?" for char in text)


def _table(header: str, values: Table) -> list[str]:
    return [header, *(f"{key} = {_show(value)}" for key, value in values.items()), ""]


def _servers(pool: Pool) -> list[str]:
    """One server a line, so that later changes are easy to see."""
    return ["servers = [", *(f"  {_show(_entry(pool, server))}," for server in _in_order(pool)), "]", ""]


def _entry(pool: Pool, server: PoolServer) -> str:
    """In a ring each with the name that it has there, so that it may get another address and keep its keys."""
    return f"{server.entry} {server.name}" if _gets_alias(pool, server) else server.entry


def _gets_alias(pool: Pool, server: PoolServer) -> bool:
    return pool.values["distribution"] == RING and not server.named


def _in_order(pool: Pool) -> list[PoolServer]:
    """The servers in the order that twemproxy gives them: not that of its file, unless it makes no difference."""
    servers = [server for _, server in pool.values["servers"]]
    return sorted(servers, key=lambda server: server.rank) if pool.values["distribution"] in ORDER_MATTERS else servers


def _show(value: object) -> str:
    """A value in toml."""
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_show(one)}' for key, one in value.items())} }}"
    return str(_Encoder().dump_value(value))


class _Encoder(toml.TomlEncoder):
    """The package's encoder but for strings: it garbles those with a backslash before an x, or with control characters.

    A string of JSON is one of toml, too, except for the character 0x7f, which toml wants escaped.
    """

    def __init__(self) -> None:
        super().__init__()
        self.dump_funcs[str] = lambda text: json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


Note = Callable[[Pool, str], list[str]]


def _named(pool: Pool, name: str) -> list[str]:
    return [] if name == pool.name else [f"the pool's name has become {name}: letters, digits, '_', '.' and '-' only"]


def _mode(pool: Pool, name: str) -> list[str]:
    if not pool.values["listen"].startswith("unix:"):
        return []
    return [
        "listen: a file mode behind the path is not kept. Who may write to the socket may connect: the umask with",
        "which the fleet is started decides (umask 0111 makes it 0666; UMask= in a unit).",
    ]


def _timeouts(pool: Pool, name: str) -> list[str]:
    value = pool.values["timeout"]
    if not value:
        return [
            "timeout: twemproxy would wait for ever; here nothing does, so long deadlines are written below.",
            "Shorten them: a hung server holds its clients for that long.",
        ]
    return [
        f"timeout: {value}: becomes three deadlines. Connecting, waiting in the proxy (queue_ms) and waiting for the",
        "server (read_ms) are counted apart, so a burst in the proxy no longer counts as a failure of the server.",
    ]


def _ejection(pool: Pool, name: str) -> list[str]:
    lines = []
    if pool.values["auto_eject_hosts"]:
        lines += [
            "auto_eject_hosts: true: kept by the route below. Where a server fails, its keys go to where twemproxy",
            "would have them without it, from the first failure on, and back as soon as it answers again. What was",
            "written elsewhere meanwhile is then not seen, as with twemproxy: for caches only.",
        ]
    dropped = [key for key in ("server_retry_timeout", "server_failure_limit") if key in pool.written]
    if dropped:
        lines.append(f"{', '.join(dropped)}: not kept; [instance.level.backoff] has the pauses before new attempts")
    return lines


def _clients(pool: Pool, name: str) -> list[str]:
    value = pool.values["client_connections"]
    if not value:
        return []
    return [f"client_connections: {value}: becomes max_clients, which each worker process counts by itself"]


def _automatic(pool: Pool, name: str) -> list[str]:
    lines = [f"{key}: not kept; {why}" for key, why in AUTOMATIC.items() if key in pool.written]
    if pool.values["server_connections"] > 1:
        lines.append("server_connections: becomes connections, per worker process; one, pipelined, is often enough")
    return lines


AUTOMATIC = {
    "backlog": "the queue of a listener is as long as the system allows",
    "preconnect": "the proxy decides itself when to connect",
    "tcpkeepalive": "connections are always kept alive",
    "reuse_port": "every worker process has its own queue on the same port",
}
"""Keys without a counterpart, because there is nothing to decide."""


def _redis(pool: Pool, name: str) -> list[str]:
    if not pool.values["redis"]:
        return []
    lines = ["dbs = 1: twemproxy knows no SELECT; raise it to let clients use more databases"]
    if pool.values["redis_auth"]:
        lines.append("redis_auth: becomes two passwords, as it was: clients give it, and the servers are given it")
    return lines


def _order(pool: Pool, name: str) -> list[str]:
    if _in_order(pool) == [server for _, server in pool.values["servers"]]:
        return []
    return [
        "servers: in the order into which twemproxy sorts them, by name: shorter names first, equally long ones by",
        f"their bytes. Leave them so: {ORDER_MATTERS[pool.values['distribution']]}.",
    ]


def _ring(pool: Pool, name: str) -> list[str]:
    pinned = [server.name for _, server in pool.values["servers"] if server.pinned]
    lines = [f"servers: the alias {alias} keeps the name this server had in the ring" for alias in pinned]
    if any(_gets_alias(pool, server) for _, server in pool.values["servers"]):
        lines += [
            "servers: those without a name have the one of twemproxy's ring as their alias. Leave it as it is when a",
            "server gets another address: its keys stay with it.",
        ]
    return lines


NOTES: tuple[Note, ...] = (_named, _mode, _timeouts, _ejection, _clients, _automatic, _redis, _order, _ring)
"""What there is to say about a pool, in the order in which it is written."""
