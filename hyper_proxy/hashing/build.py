"""From the names in a configuration to a placement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from hyper_proxy.config.notes import suggest
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.names import Server, full_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe
from hyper_proxy.hashing.tables import DISTRIBUTIONS, HASHES


class HasOptions(Protocol):
    """What both kinds of rows have in common."""

    @property
    def options(self) -> str: ...


Row = TypeVar("Row", bound=HasOptions)


def find_row(kind: str, name: str, table: Mapping[str, Row]) -> tuple[Row, tuple[str, ...]]:
    """The row of a name and the options that follow it; HashingError names the nearest known name."""
    base, *options = name.split("-")
    if base in table:
        if options and not table[base].options:
            raise HashingError(f"{kind} '{name}': '{base}' takes no options")
        return table[base], tuple(options)
    raise HashingError(f"unknown {kind} '{name}'{suggest(base, table) or '; docs/hashing.md has all of them'}")


def build_hash(name: str) -> Hash:
    """The hash function of this name."""
    row, options = find_row("hash", name, HASHES)
    try:
        return row.make(options)
    except HashingError as error:
        raise HashingError(f"hash '{name}': {error}") from error


def read_tag(hash_tag: str) -> bytes:
    """The two characters of a hash tag as bytes."""
    if len(hash_tag) not in (0, 2) or not hash_tag.isascii():
        raise HashingError(f"hash_tag '{hash_tag}': must be empty or two ASCII characters, such as '{{}}'")
    return hash_tag.encode()


def check_servers(servers: Iterable[Server]) -> tuple[Server, ...]:
    """At least one server, no weight below 1."""
    checked = tuple(servers)
    if not checked:
        raise HashingError("a placement needs at least one server")
    for server in checked:
        if server.weight < 1:
            raise HashingError(f"server '{full_name(server)}': its weight {server.weight} must be at least 1")
    return checked


def build(hash: str, distribution: str, hash_tag: str, servers: Sequence[Server]) -> Placement:
    """The placement that a level of the configuration asks for.

    An empty `hash` means the default of the distribution. Raises HashingError.
    """
    row, options = find_row("distribution", distribution, DISTRIBUTIONS)
    function = None if row.hash is None else build_hash(hash or row.hash)
    return row.make(Recipe(distribution, options, function, read_tag(hash_tag), check_servers(servers)))
