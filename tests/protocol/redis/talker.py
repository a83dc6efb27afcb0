"""A session that has only said hello: what the handlers of local commands see."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import Instance
from hyper_proxy.stats.classes import CLASSES
from hyper_proxy.stats.instance import InstanceStats

CONFIG = """
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:7000"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:7001:1 a", "127.0.0.1:7002:1 b", "127.0.0.1:7003:1 c"]
"""


def _stats() -> InstanceStats:
    stats = InstanceStats(CLASSES)
    for klass, requests in enumerate((3, 1, 2, 1)):
        stats.note(klass, requests, 100)
    for kind in ("client", "client", "timeout"):
        stats.error(kind)
    stats.accepted, stats.bytes_in, stats.bytes_out = 5, 100, 200
    return stats


@dataclass(frozen=True, slots=True)
class Connection:
    """A client's byte counts."""

    bytes_in: int = 7
    bytes_out: int = 9


@dataclass(slots=True)
class Front:
    """An instance with two clients."""

    stats: InstanceStats = field(default_factory=_stats)
    clients: list[Connection] = field(default_factory=lambda: [Connection(), Connection()])


@dataclass(slots=True)
class Talker:
    """Satisfies session_view.SessionView."""

    resp: int = 2
    id: int = 42
    db: int = 3
    name: bytes = b""
    lib_name: bytes = b""
    lib_ver: bytes = b""
    user: str = "default"
    address: str = "127.0.0.1:50000"
    laddr: str = "127.0.0.1:7000"
    created: float = field(default_factory=time.monotonic)
    instance: Instance = field(default_factory=lambda: load_text(CONFIG, "test.toml").instances[0])
    front: Front = field(default_factory=Front)
