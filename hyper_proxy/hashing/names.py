"""The names under which servers take part in a ring: they decide every point, so they are those of the system replaced.

An alias stands for the address everywhere: it is what keeps a ring stable when a server moves to another address.
"""

from __future__ import annotations

from typing import Protocol

MEMCACHE_PORT = 11211  # libmemcached, and after it twemproxy, leaves this port out of a name


class Server(Protocol):
    """What placement needs to know about a server; the configuration's Server has it."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def weight(self) -> int: ...
    @property
    def name(self) -> str: ...


def ring_name(server: Server) -> str:
    """twemproxy's: alias, else `host:port` without port 11211, else the unix path and a colon, else the file."""
    if server.name or server.file:
        return server.name or server.file
    if server.path:
        return f"{server.path}:"
    return server.host if server.port == MEMCACHE_PORT else f"{server.host}:{server.port}"


def full_name(server: Server) -> str:
    """Alias, else `host:port` whatever the port (`[host]:port` for IPv6), else the unix path, else the file."""
    host = f"[{server.host}]" if ":" in server.host else server.host
    return server.name or server.path or server.file or f"{host}:{server.port}"
