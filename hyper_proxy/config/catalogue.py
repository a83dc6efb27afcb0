"""What the configuration asks of the code that will run it: is there such a hash, distribution, placement, command?

The only file of this folder that looks at the layers, and only while a file is read: importing the configuration stays
cheap, and no layer depends on it in a circle.
"""

from __future__ import annotations

from hyper_proxy.config.model import Level
from hyper_proxy.config.notes import suggest


def hash_fault(name: str) -> str | None:
    """What is wrong with the name of a hash; "" stands for the distribution's own."""
    from hyper_proxy import hashing

    try:
        if name:
            hashing.build_hash(name)
    except hashing.HashingError as error:
        return str(error)
    return None


def distribution_fault(name: str) -> str | None:
    """What is wrong with the name of a distribution; what follows the first "-" is checked with the servers."""
    from hyper_proxy import hashing

    base = name.partition("-")[0]
    if base in hashing.DISTRIBUTIONS:
        return None
    return f"unknown distribution '{name}'{suggest(base, hashing.DISTRIBUTIONS)}"


def placement_fault(level: Level) -> str | None:
    """Why keys cannot be placed on the servers of a level in the way it asks for."""
    from hyper_proxy import hashing

    try:
        hashing.build(level.hash, level.distribution, level.hash_tag, level.servers)
    except hashing.HashingError as error:
        return str(error)
    return None


def placement_traps(level: Level) -> list[str]:
    """Known traps of a placement that can be built."""
    from hyper_proxy import hashing

    return hashing.warnings(level.hash, level.distribution, level.servers)


def command_idle(protocol: str, name: str) -> str | None:
    """Why allowing a command (in upper case) has no effect; None when it has one."""
    known = _dangerous(protocol)
    if known.get(name):
        return None
    if name in known:
        return f"{name} needs no allowance: it is served, or refused, whatever this list says"
    return f"{protocol} has no command {name}{suggest(name, known)}"


def _dangerous(protocol: str) -> dict[str, bool]:
    """Every command of a protocol in upper case; True for those that are served only when they are allowed."""
    if protocol == "redis":
        from hyper_proxy.protocol.redis.commands import COMMANDS

        return {name.decode().upper(): bool(row.dangerous) for name, row in COMMANDS.items()}
    return {"FLUSH_ALL": True}
