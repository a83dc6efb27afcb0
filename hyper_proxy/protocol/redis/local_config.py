"""CONFIG GET: a few settings that clients and tools look for, with what is true of the proxy."""

from __future__ import annotations

from collections.abc import Callable

from . import encode
from .glob import compile_pattern
from .session_view import Handler, SessionView

Read = Callable[[SessionView], str]


def _constant(value: str) -> Read:
    return lambda session: value


def _port(session: SessionView) -> str:
    port = session.laddr.rpartition(":")[2]
    return port if port.isdigit() else "0"


# By redis' name. The proxy stores nothing, so it saves and evicts nothing; clients are bound by its limits.
SETTINGS: dict[str, Read] = {
    "activedefrag": _constant("no"),
    "appendonly": _constant("no"),
    "cluster-enabled": _constant("no"),
    "databases": lambda session: str(session.instance.dbs),
    "maxclients": lambda session: str(session.instance.limits.max_clients),
    "maxmemory": _constant("0"),
    "maxmemory-policy": _constant("noeviction"),
    "port": _port,
    "proto-max-bulk-len": lambda session: str(session.instance.limits.max_value_bytes),
    "save": _constant(""),
    "rdbcompression": _constant("no"),
    "replica-read-only": _constant("no"),
    "timeout": lambda session: str(int(session.instance.limits.idle_timeout_s)),
}


def get(session: SessionView, argv: list[bytes]) -> bytes:
    """CONFIG GET pattern [pattern ...]: each setting that any of the patterns matches, once, whatever its case."""
    patterns = [compile_pattern(word.lower()) for word in argv[2:]]
    found = {
        name: read(session)
        for name, read in SETTINGS.items()
        if any(pattern.matches(name.encode()) for pattern in patterns)
    }
    return encode.value(found, session.resp)


HANDLERS: dict[bytes, Handler] = {b"config|get": get}
