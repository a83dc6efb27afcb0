"""Questions about the layers that only the layers can answer: is there such a hash, distribution, placement, command?

The configuration lies beside the layers and must not import them, while they import it. So the answers are bound late
and by name, like a plug-in: CATALOGUE is imported when a file is read; whoever only needs the records never loads it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from hyper_proxy.config.model import Level, Plugin

CATALOGUE = "hyper_proxy.catalogue"
LOADER = "hyper_proxy.plugins"
on_load: Callable[[str], object] = lambda name: None  # noqa: E731
"""Is told the name of each plug-in before its code is run, and "" behind it: whoever reads a file in a process of its
own can say of whose code that has ended (apart.py)."""


class Catalogue(Protocol):
    """What the module CATALOGUE answers; None and an empty list mean that there is nothing to object to."""

    def hash_fault(self, name: str) -> str | None:
        """What is wrong with the name of a hash."""

    def distribution_fault(self, name: str) -> str | None:
        """What is wrong with the name of a distribution."""

    def placement_fault(self, level: Level) -> str | None:
        """Why keys cannot be placed on the servers of a level."""

    def placement_traps(self, level: Level) -> list[str]:
        """Known traps of a placement that can be built."""

    def command_idle(self, protocol: str, name: str) -> str | None:
        """Why allowing a command has no effect."""

    def load_plugins(self, plugins: Sequence[Plugin]) -> list[str | None]:
        """Loads plug-ins, and only these: why one of them cannot be loaded."""


def catalogue() -> Catalogue:
    """The module that answers."""
    return cast(Catalogue, importlib.import_module(CATALOGUE))


def hash_fault(name: str) -> str | None:
    """What is wrong with the name of a hash; "" names the distribution's own."""
    return catalogue().hash_fault(name) if name else None


def named_hash_fault(name: str) -> str | None:
    """The same where there is no distribution that could have a hash of its own."""
    return catalogue().hash_fault(name)


def distribution_fault(name: str) -> str | None:
    """What is wrong with the name of a distribution."""
    return catalogue().distribution_fault(name)


def load_plugins(plugins: Sequence[Plugin]) -> list[str | None]:
    """Loads plug-ins in the place of those of the file before: why one of them cannot be loaded."""
    return catalogue().load_plugins(plugins) if plugins or LOADER in sys.modules else []
