"""Reads twemproxy's (nutcracker's) YAML file as twemproxy 0.5 does, into pools; every fault is a finding with its line.

The keys are those of its manual, with its defaults. All scalars are texts there: "true" and "false" are the only
booleans, numbers are decimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from hyper_proxy import hashing
from hyper_proxy.common.errors import ConfigError, Finding
from hyper_proxy.config.addresses import MAX_PORT, MAX_WEIGHT
from hyper_proxy.config.addresses import read_server as read_own_server
from hyper_proxy.config.model import format_address
from hyper_proxy.config.notes import suggest

KETAMA_PORT = 11211
"""The port that is left out of a server's name in the ring."""

HASHES = (
    "one_at_a_time", "md5", "crc16", "crc32", "crc32a", "fnv1_64", "fnv1a_64", "fnv1_32", "fnv1a_32", "hsieh", "murmur",
    "jenkins",
)  # fmt: skip
DISTRIBUTIONS = ("ketama", "modula", "random")


@dataclass(frozen=True, slots=True)
class PoolServer:
    """`entry` is our way to write the server, `name` its name in twemproxy's ring; pinned: only an alias keeps that.
    named: has it an alias?"""

    entry: str
    name: str
    pinned: bool
    named: bool

    @property
    def rank(self) -> tuple[int, bytes]:
        """What twemproxy sorts the servers of a pool by when it validates its file (conf_validate_server)."""
        name = self.name.encode()
        return len(name), name


@dataclass(slots=True)
class Pool:
    """One pool; `values` holds every key, defaults included, `written` those that are in the file with their lines."""

    name: str
    line: int
    values: dict[str, Any]
    written: dict[str, int] = field(default_factory=dict)


def _text(text: str) -> str:
    return text


def _number(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text):
        raise ValueError(f"'{text}' is not a number")
    return int(text)


def _positive(text: str) -> int:
    if _number(text) == 0:
        raise ValueError("must not be 0")
    return int(text)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"'{text}' is neither true nor false")
    return text == "true"


def _one_of(names: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise ValueError(f"'{text}' is none of {', '.join(names)}{suggest(text, names)}")
        return text

    return read


def _hash_tag(text: str) -> str:
    if not re.fullmatch("[!-~]{2}", text):
        raise ValueError(f"{text!r} is not a pair of visible ASCII characters")
    return text


def _listen(text: str) -> str:
    """Our form of the address; a socket's mode is read and left out."""
    if text.startswith("/"):
        path, blank, mode = text.rpartition(" ")
        if blank and not re.fullmatch("0?[0-7]{1,3}", mode):
            raise ValueError(f"'{mode}' is not a file mode")
        return f"unix:{path if blank else text}"
    host, colon, port = text.rpartition(":")
    if not colon or not host or not _is_port(port):
        raise ValueError(f"'{text}' is neither host:port nor the path of a socket")
    return format_address(host, int(port), "")


def _is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,9}", text) is not None and 1 <= int(text) <= MAX_PORT


def _server(text: str) -> PoolServer:
    """host:port:weight[ name] or /path:weight[ name], taken apart from the end."""
    place, _, alias = text.rpartition(" ") if " " in text else (text, "", "")
    unix = place.startswith("/")
    address, _, weight = place.rpartition(":")
    host, _, port = ("", "", "") if unix else address.rpartition(":")
    if not re.fullmatch("[0-9]{1,9}", weight) or not 1 <= int(weight) <= MAX_WEIGHT:
        raise ValueError(f"'{text}' has no weight from 1 to {MAX_WEIGHT}: host:port:weight or /path:weight, and a name")
    if not unix and not host and _is_port(weight):
        raise ValueError(f"'{text}' has no weight: host:port:weight, then a name")
    if not unix and (not host or not _is_port(port)):
        raise ValueError(f"'{text}' has no port from 1 to {MAX_PORT}: host:port:weight, then a name")
    if unix:
        own, name = f"unix:{address}", alias or f"{address}:"
    else:
        own = format_address(host, int(port), "")
        name = alias or (host if int(port) == KETAMA_PORT else address)
    entry = f"{own}:{weight}{' ' if alias else ''}{alias}"
    pinned = hashing.ring_name(read_own_server(entry)) != name
    if pinned:
        entry = f"{own}:{weight} {name}"
        read_own_server(entry)
    return PoolServer(entry, name, pinned, pinned or bool(alias))


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a pool: how its text is read, and twemproxy's default (None: there is none)."""

    read: Callable[[str], Any]
    default: Any = None


KEYS: dict[str, Key] = {
    "listen": Key(_listen),
    "hash": Key(_one_of(HASHES), "fnv1a_64"),
    "hash_tag": Key(_hash_tag, ""),
    "distribution": Key(_one_of(DISTRIBUTIONS), "ketama"),
    "timeout": Key(_number, 0),
    "backlog": Key(_number, 512),
    "client_connections": Key(_number, 0),
    "tcpkeepalive": Key(_boolean, False),
    "reuse_port": Key(_boolean, False),
    "redis": Key(_boolean, False),
    "redis_auth": Key(_text, ""),
    "redis_db": Key(_number, 0),
    "preconnect": Key(_boolean, False),
    "auto_eject_hosts": Key(_boolean, False),
    "server_connections": Key(_positive, 1),
    "server_retry_timeout": Key(_number, 30_000),
    "server_failure_limit": Key(_number, 2),
    "servers": Key(_server),
}


class _Faults:
    """The findings of one YAML file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Finding] = []

    def add(self, line: int, code: str, message: str) -> None:
        """Notes an error."""
        self.found.append(Finding(self.file, line, "error", code, message))


def read_pools(text: str, file: str) -> list[Pool]:
    """All pools of a file; raises ConfigError with every fault."""
    faults = _Faults(file)
    pools: list[Pool] = []
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        faults.add(mark.line + 1 if mark else 1, "HP103", f"is not valid YAML: {problem}")
        raise ConfigError(faults.found) from error
    if isinstance(root, yaml.MappingNode) and root.value:
        pools = [_read_pool(name, body, faults) for name, body in root.value]
        _refuse_repeats(pools, faults)
    else:
        faults.add(1, "HP107", "there are no pools: a mapping of pool names is wanted")
    if faults.found:
        raise ConfigError(sorted(faults.found, key=lambda finding: finding.line))
    return pools


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _read_pool(name: yaml.Node, body: yaml.Node, faults: _Faults) -> Pool:
    pool = Pool(str(name.value), _line(name), {key: row.default for key, row in KEYS.items()})
    if not isinstance(body, yaml.MappingNode):
        faults.add(_line(name), "HP105", f"{pool.name}: a mapping of keys is wanted")
        return pool
    for key, value in body.value:
        word = str(key.value)
        if word not in KEYS:
            faults.add(_line(key), "HP104", f"{pool.name}.{word}: twemproxy has no such key{suggest(word, KEYS)}")
        elif word in pool.written:
            faults.add(_line(key), "HP104", f"{pool.name}.{word}: is already in line {pool.written[word]}")
        else:
            pool.written[word] = _line(key)
            pool.values[word] = _read_value(pool, word, value, faults)
    for word in ("listen", "servers"):
        if word not in pool.written:
            faults.add(pool.line, "HP107", f"{pool.name}: {word} is missing")
    if pool.values["redis_auth"] and pool.values["redis"] is False:  # not None: what it says can't be read
        faults.add(pool.written["redis_auth"], "HP205", f"{pool.name}.redis_auth: only a redis pool has it")
    return pool


def _read_value(pool: Pool, word: str, node: yaml.Node, faults: _Faults) -> Any:
    """One key's value; servers are a list of (line, server)."""
    if word != "servers":
        return _read_scalar(pool, word, node, faults)
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        faults.add(_line(node), "HP105", f"{pool.name}.servers: a list of servers is wanted")
        return []
    return [(_line(entry), _read_scalar(pool, word, entry, faults)) for entry in node.value]


def _read_scalar(pool: Pool, word: str, node: yaml.Node, faults: _Faults) -> Any:
    if not isinstance(node, yaml.ScalarNode):
        hint = "a plain value is wanted; one that begins with { or [ goes in quotes"
        faults.add(_line(node), "HP105", f"{pool.name}.{word}: {hint}")
        return None
    try:
        return KEYS[word].read(node.value)
    except ValueError as error:
        faults.add(_line(node), "HP110" if word == "servers" else "HP106", f"{pool.name}.{word}: {error}")
        return None


def _refuse_repeats(pools: list[Pool], faults: _Faults) -> None:
    """Names and addresses that twemproxy wants to be different."""
    names: dict[str, int] = {}
    listens: dict[str, str] = {}
    for pool in pools:
        if names.setdefault(pool.name, pool.line) != pool.line:
            faults.add(pool.line, "HP201", f"{pool.name}: is already the name of the pool in line {names[pool.name]}")
        listen = pool.values["listen"]
        if listen and listens.setdefault(listen, pool.name) != pool.name:
            line = pool.written["listen"]
            faults.add(line, "HP202", f"{pool.name}.listen: {listen} is already taken by {listens[listen]}")
        ring: dict[str, int] = {}
        for line, server in pool.values["servers"] or ():
            if server and ring.setdefault(server.name, line) != line:
                first = ring[server.name]
                faults.add(line, "HP203", f"{pool.name}.servers: '{server.name}' is already in line {first}")
