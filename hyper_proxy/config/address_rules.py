"""The rules about names and addresses: what must be there once, and what must not meet."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from hyper_proxy.config.build import BLANK_LISTEN
from hyper_proxy.config.model import Config, Listen, Server
from hyper_proxy.config.notes import Path, show_path
from hyper_proxy.config.rule import Say, levels_of, repeats, servers_of

_EVERYWHERE = frozenset(("0.0.0.0", "::"))
_LOOPBACK_NAMES = frozenset(("localhost", "::1"))


def _listeners(config: Config) -> Iterator[tuple[Path, Listen]]:
    yield ("admin", "listen"), config.admin
    for i, instance in enumerate(config.instances):
        for j, listen in enumerate(instance.listen):
            if listen != BLANK_LISTEN:
                yield ("instance", i, "listen", j), listen


def _is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in _LOOPBACK_NAMES


def _covers(everywhere: str, host: str) -> bool:
    """Does who listens on all addresses of a family listen on this one, or maybe, if it is a name?"""
    if everywhere not in _EVERYWHERE:
        return False
    is_name = ":" not in host and not host.replace(".", "").isdecimal()
    return is_name or (":" in host) == (":" in everywhere)


def _overlap(one: Listen | Server, other: Listen | Server) -> bool:
    """Do two addresses meet at one socket of this machine, as far as that can be told without asking anybody?"""
    if one.path or other.path:
        return one.path == other.path
    if one.port != other.port:
        return False
    same = one.host == other.host or {one.host, other.host} == {"localhost", "127.0.0.1"}
    return same or _covers(one.host, other.host) or _covers(other.host, one.host)


def names_are_unique(config: Config, say: Say) -> None:
    """HP201"""
    rows: list[tuple[Path, Hashable]] = [
        (("instance", i, "name"), instance.name) for i, instance in enumerate(config.instances) if instance.name
    ]
    for path, first, name in repeats(rows):
        say(path, f"'{name}' is already the name of {show_path(first[:-1])}")


def listeners_are_unique(config: Config, say: Say) -> None:
    """HP202"""
    seen: list[tuple[Path, Listen]] = []
    for path, listen in _listeners(config):
        clash = next((before for before, other in seen if _overlap(listen, other)), None)
        if clash:
            say(path, f"{listen.address} is already taken by {show_path(clash)}")
        seen.append((path, listen))


def aliases_are_unique(config: Config, say: Say) -> None:
    """HP203"""
    for path, level in levels_of(config):
        named: dict[str, tuple[Path, Server]] = {}
        for at, server in servers_of(level, path):
            first, other = named.setdefault(server.name, (at, server))
            # One that reads and writes stands in both lists, under its one name.
            both = first[4] != at[4] and other.address == server.address
            both = both or ("years" in at and other.address == server.address)
            if server.name and first != at and not both and "pool" not in at:
                say(at, f"the alias '{server.name}' is already that of {show_path(first)}")


def no_instance_serves_itself(config: Config, say: Say) -> None:
    """HP209"""
    steps = list(_steps(config))
    onward: dict[int, set[int]] = {}
    for _, _, here, there in steps:
        onward.setdefault(here, set()).add(there)
    for at, server, here, there in steps:
        if here == there:
            say(at, f"{server.address} is where this instance itself listens: its requests would run in a circle")
        elif here in _reached(there, onward):
            name = config.instances[there].name
            say(at, f"{server.address} is where instance '{name}' listens, which leads back here: a circle")


def _steps(config: Config) -> Iterator[tuple[Path, Server, int, int]]:
    """Each server that is a listener of this fleet: of which instance it is a server, and of which it is a listener."""
    for path, level in levels_of(config):
        for at, server in servers_of(level, path):
            for index, instance in enumerate(config.instances if not server.file else ()):
                if any(listen != BLANK_LISTEN and _reaches(server, listen) for listen in instance.listen):
                    yield at, server, int(path[1]), index


def _reached(start: int, onward: dict[int, set[int]]) -> set[int]:
    """All to which the steps lead from here."""
    found: set[int] = set()
    ahead = [start]
    while ahead:
        new = onward.get(ahead.pop(), set()) - found
        found |= new
        ahead += new
    return found


def _reaches(server: Server, listen: Listen) -> bool:
    """Does a connection to this server surely end at this listener?"""
    if listen.host in _EVERYWHERE:
        here = _is_loopback(server.host) and _covers(listen.host, server.host)
        return server.port == listen.port and not server.path and here
    return _overlap(server, listen)


def admin_is_private(config: Config, say: Say) -> None:
    """HP403"""
    if not config.admin.path and not _is_loopback(config.admin.host):
        say(("admin", "listen"), f"{config.admin.address} is open to other machines, and asks no password of who reads")


def servers_are_different(config: Config, say: Say) -> None:
    """HP404"""
    for path, level in levels_of(config):
        for key in ("servers", "writers"):
            rows: list[tuple[Path, Hashable]] = [
                (at, server.address) for at, server in servers_of(level, path) if at[4] == key
            ]
            for at, first, address in repeats(rows):
                say(at, f"{address} is also {show_path(first)}")
