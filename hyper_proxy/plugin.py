"""What a plug-in is made of: the one module that it imports. docs/plugins.md tells how to write one.

    from hyper_proxy import plugin

    @plugin.protocol("toy")                  a subclass of Protocol: six functions
    @plugin.storage("folder")                a subclass of KeyValue, or of ReadOnly
    @plugin.hash_function("djb2")            key -> number
    @plugin.distribution("first_half")       servers -> (number -> index of a server)

Each puts a row into a table in which the built-in ones stand as well: nothing that follows tells them apart. What can
be seen to be wrong is an error at this moment, with file and line, which `hyper-proxy check` shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from hyper_proxy.common.errors import BackendError, ClientError, HyperProxyError
from hyper_proxy.common.plugin_error import PluginError, guarded, nonsense
from hyper_proxy.config import kinds
from hyper_proxy.config.model import Level
from hyper_proxy.config.notes import suggest
from hyper_proxy.hashing.names import Server, full_name, ring_name
from hyper_proxy.hashing.plugged import Choose, HashFunction, distribution_row, hash_row
from hyper_proxy.hashing.tables import DISTRIBUTIONS, HASHES
from hyper_proxy.plugin_shape import check_class, check_function
from hyper_proxy.plugins import REGISTRY
from hyper_proxy.protocol.functions.explain import explain
from hyper_proxy.protocol.functions.protocol import Client, Partly, Protocol, Request
from hyper_proxy.protocol.table import PROTOCOLS, made_of
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Mode, Outcome, Put, Remove
from hyper_proxy.storage.plugged import Plugged, ReadOnly
from hyper_proxy.storage.table import KEY_SPACES, Make

__all__ = [
    "ADMIN", "IDEMPOTENT", "READ", "WRITE",
    "BackendError", "Change", "Client", "ClientError", "Edit", "Expire", "HyperProxyError", "Item", "KeyValue", "Level",
    "Mode", "Outcome", "Partly", "Protocol", "Put", "ReadOnly", "Remove", "Request", "Server",
    "distribution", "full_name", "hash_function", "protocol", "ring_name", "storage",
]  # fmt: skip

P = TypeVar("P", bound=type[Protocol])
K = TypeVar("K", bound=type[KeyValue])
F = TypeVar("F", bound=HashFunction)
D = TypeVar("D", bound=Callable[[Sequence[Server]], Choose])

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


def protocol(name: str) -> Callable[[P], P]:
    """The class is a protocol: `protocol = "NAME"` of an instance. It is made once, without arguments."""

    what = _named("protocol", name)

    def register(made: P) -> P:
        owner = REGISTRY.owner
        check_class(owner, what, made, Protocol, ())
        one: Protocol = guarded(owner, what, made)
        row = guarded(owner, f"{what}: refuse", made_of, one, owner, partial(explain, one, owner))
        if not isinstance(row.full(), bytes):
            raise nonsense(owner, f"{what}: refuse", one.refuse, "bytes", row.full())
        REGISTRY.add("protocol", PROTOCOLS, name, row)
        REGISTRY.append(kinds.PROTOCOLS, name)
        REGISTRY.add("protocol", kinds.STORAGES, name, kinds.STORAGES["http"])  # every storage of keys and values
        return made

    return register


def storage(name: str, *, files: bool = False) -> Callable[[K], K]:
    """The class is a storage: `storage = "NAME"` of a level. One is made for each of the level's servers, by
    made(server, level); with `files` these are paths (server.file), else addresses (server.host, server.port), and the
    level may have a username and a password."""

    what = _named("storage", name)

    def register(made: K) -> K:
        check_class(REGISTRY.owner, what, made, KeyValue, ("server", "level"))
        make: Make = Plugged(REGISTRY.owner, made)
        REGISTRY.add("storage", KEY_SPACES, name, make)
        served = [kinds.STORAGES[built_in] for built_in in kinds.BUILT_IN]
        for names in (kinds.KINDS, kinds.PLACED, kinds.KNOWING, *served):
            REGISTRY.append(names, name)
        REGISTRY.append(kinds.FILES if files else kinds.LOGIN, name)
        return made

    return register


def hash_function(name: str, help: str = "") -> Callable[[F], F]:
    """The function is a hash: `hash = "NAME"` of a level. From a key to a number, 0 to 2**64-1, always the same one."""

    what = _named("hash", name)

    def register(function: F) -> F:
        check_function(REGISTRY.owner, what, function, ("key",))
        row = hash_row(REGISTRY.owner, what, function, help or f"plug-in {REGISTRY.owner.name}")
        REGISTRY.add("hash", HASHES, name, row)
        return function

    return register


def distribution(
    name: str, *, hash: str = "fnv1a_64", help: str = "", weights: bool = False, names: bool = False
) -> Callable[[D], D]:
    """The function is a distribution: `distribution = "NAME"` of a level.

    It gets the servers once, and returns the function from a key's hash to the index of its server. hash: what is used
    where the level names none. weights, names: do those of the servers count? Then `check` does not warn of them.
    """

    what = _named("distribution", name)

    def register(make: D) -> D:
        check_function(REGISTRY.owner, what, make, ("servers",))
        if hash.partition("-")[0] not in HASHES:
            raise _fault(what, f"there is no hash '{hash}'{suggest(hash, HASHES)}")
        row = distribution_row(
            REGISTRY.owner, make, hash, help or f"plug-in {REGISTRY.owner.name}", weights=weights, names=names
        )
        REGISTRY.add("distribution", DISTRIBUTIONS, name, row)
        return make

    return register


def _named(kind: str, name: object) -> str:
    if callable(name):
        raise _fault(kind, 'the decorator lacks the name: write ("NAME") behind it')
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _fault(kind, f"the name {name!r} is not a word of small letters, digits and '_', at most 64 long")
    return f"{kind} '{name}'"


def _fault(what: str, reason: str) -> PluginError:
    return PluginError(REGISTRY.owner, what, reason)
