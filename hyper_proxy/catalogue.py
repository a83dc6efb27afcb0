"""Answers what the configuration asks about the layers: is there such a hash, distribution, placement, command?

The configuration finds this file by its name (config/ask.py), since it must not import a layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy import hashing
from hyper_proxy.config.model import MAIN, Level, Plugin
from hyper_proxy.config.notes import suggest
from hyper_proxy.config.table_split import placed
from hyper_proxy.hashing.routes.build import build_level

OTHER_NAMES = {"consistent": "ketama' or 'libmemcached_ketama", "consistent_hashing": "ketama"}
"""What distributions are called elsewhere, by PHP and libmemcached among others."""


def hash_fault(name: str) -> str | None:
    """What is wrong with the name of a hash."""
    try:
        hashing.build_hash(name)
    except hashing.HashingError as error:
        return str(error)
    return None


def distribution_fault(name: str) -> str | None:
    """What is wrong with the name of a distribution; what follows the first "-" is checked with the servers."""
    base = name.partition("-")[0]
    if base in hashing.DISTRIBUTIONS:
        return None
    near = suggest(base, hashing.DISTRIBUTIONS, OTHER_NAMES)
    return f"unknown distribution '{name}'{near or '; docs/hashing.md has all of them'}"


def placement_fault(level: Level) -> str | None:
    """Why keys cannot be placed on the servers of a level in the way it asks for."""
    try:
        build_level(level)
    except hashing.HashingError as error:
        return str(error)
    return None


def placement_traps(level: Level) -> list[str]:
    """Known traps of a placement that can be built."""
    used = level.route.pools if level.route else {MAIN}
    # The parts of a table have no addresses that could move.
    pools = [one for name, one in level.pool_levels().items() if name in used and placed(one) is one.servers]
    return [trap for one in pools for trap in hashing.warnings(one.hash, one.distribution, one.servers)]


def command_idle(protocol: str, name: str) -> str | None:
    """Why allowing a command (in upper case) has no effect; None when it has one."""
    from hyper_proxy.protocol.table import PROTOCOLS  # most files have no list of allowed commands

    known = PROTOCOLS[protocol].commands
    if known.get(name):
        return None
    if name in known:
        return f"{name} needs no allowance: it is served, or refused, whatever this list says"
    return f"{protocol} has no command {name}{suggest(name, known)}"


def load_plugins(plugins: Sequence[Plugin]) -> list[str | None]:
    """Loads plug-ins, and only these: why one of them cannot be loaded."""
    from hyper_proxy.plugins import load_all  # most files have none

    return load_all(plugins)
