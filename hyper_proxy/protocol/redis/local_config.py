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
    "databases": lambda session: str(session.instance.databases),
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
    """CONFIG GET pattern [pattern ...], whatever the case; a name asked for without a pattern comes back as typed."""
    found: dict[bytes, str] = {}
    for word in argv[2:]:
        pattern = compile_pattern(word.lower())
        plain = not set(word) & set(b"[*?")
        for name, read in SETTINGS.items():
            if pattern.matches(name.encode()):
                found[word if plain else name.encode()] = read(session)
    return encode.value(found, session.resp)


HANDLERS: dict[bytes, Handler] = {b"config|get": get}
