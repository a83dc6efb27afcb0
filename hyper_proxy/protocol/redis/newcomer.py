"""A client that has just connected, and logged in where it must: in the place of a session for who asks beforehand what
the proxy would answer itself (explain.py). It belongs to no worker, and its own changes are lost with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic

from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.redis.conversation import ON
from hyper_proxy.protocol.redis.encode import RESP2
from hyper_proxy.protocol.redis.handshake import DEFAULT_USER
from hyper_proxy.protocol.redis.session_view import ClientView
from hyper_proxy.stats.classes import CLASSES
from hyper_proxy.stats.instance import InstanceStats


@dataclass(slots=True)
class Quiet:
    """An instance that nobody has asked anything yet."""

    stats: InstanceStats = field(default_factory=lambda: InstanceStats(CLASSES))
    clients: tuple[ClientView, ...] = ()


@dataclass(slots=True)
class Newcomer:
    """What handlers (session_view.py) and changes of a session (conversation.py) look at."""

    instance: Instance
    front: Quiet = field(default_factory=Quiet)
    name: bytes = b""
    lib_name: bytes = b""
    lib_ver: bytes = b""
    id: int = 0
    resp: int = RESP2
    db: int = 0
    user: str = DEFAULT_USER
    address: str = ""
    laddr: str = ""
    created: float = field(default_factory=monotonic)
    authenticated: bool = True
    transaction: None = None
    replies: int = ON

    def refresh(self) -> None:
        """Nothing follows from what it says."""
