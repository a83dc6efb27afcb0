"""Every protocol, by its name in the configuration: a protocol is one row here. Plug-ins add theirs to the same table
when they are loaded (hyper_proxy/plugin.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hyper_proxy.common.errors import LimitExceeded
from hyper_proxy.protocol.functions.session import FunctionSession
from hyper_proxy.protocol.http.explain import explain as explain_http
from hyper_proxy.protocol.http.front import Http
from hyper_proxy.protocol.http.routes import KEY_METHODS
from hyper_proxy.protocol.memcache.commands import COMMANDS as MEMCACHE_COMMANDS
from hyper_proxy.protocol.memcache.explain import explain as explain_memcache
from hyper_proxy.protocol.memcache.session import MemcacheSession
from hyper_proxy.protocol.redis.commands import COMMANDS as REDIS_COMMANDS
from hyper_proxy.protocol.redis.explain import explain as explain_redis
from hyper_proxy.protocol.redis.session import RedisSession

if TYPE_CHECKING:
    from hyper_proxy.common.plugin_error import Owner
    from hyper_proxy.config.model import Instance
    from hyper_proxy.protocol.explanation import Explanation
    from hyper_proxy.protocol.functions.protocol import Protocol as SixFunctions

    Explain = Callable[[Instance, list[bytes]], Explanation]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What the rest of the proxy asks of a protocol.

    session   makes the session of a client: (front, client) -> an object whose serve() is the client's greenlet
    full      makes what a client reads that comes when the instance is full
    explain   what becomes of a request, given as words; raises BadQuestion
    commands  every command in upper case: is it served only where the instance allows it?
    """

    session: Callable[..., Any]
    full: Callable[[], bytes]
    explain: Explain
    commands: Mapping[str, bool]


def made_of(
    functions: SixFunctions, owner: Owner | None, explain: Explain, commands: Mapping[str, bool] | None = None
) -> Protocol:
    """The row of a protocol of six functions; owner: the plug-in whose they are, None if they are built in.

    Raises what its `refuse` raises.
    """
    fault = LimitExceeded("max_clients", "too many connections")
    said = functions.refuse(fault)  # a plug-in is asked this once: where clients are refused nobody looks after it
    full = partial(functions.refuse, fault) if owner is None else lambda: said
    return Protocol(partial(FunctionSession, functions, owner), full, explain, commands or {})


PROTOCOLS: dict[str, Protocol] = {
    "redis": Protocol(
        RedisSession,
        lambda: b"-ERR max number of clients reached\r\n",
        explain_redis,
        {name.decode().upper(): bool(row.dangerous) for name, row in REDIS_COMMANDS.items()},
    ),
    "http": made_of(Http(), None, explain_http, dict.fromkeys(KEY_METHODS, False)),
    "memcache": Protocol(
        MemcacheSession,
        lambda: b"SERVER_ERROR too many open connections\r\n",
        explain_memcache,
        {name.decode().upper(): bool(row.dangerous) for name, row in MEMCACHE_COMMANDS.items()},
    ),
}
