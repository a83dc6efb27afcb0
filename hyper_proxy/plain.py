"""HYPER_PROXY_PLAIN=1: run the hot loops from their source although compiled ones lie beside them.

For debugging, profiling, and for proving that both forms do the same. Installed before the first hot loop is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import ModuleType

OURS = ("hyper_proxy.", "workers.", "supervisor.")


def plain_wanted() -> bool:
    """Does the environment ask for plain Python?"""
    return os.environ.get("HYPER_PROXY_PLAIN", "") not in ("", "0")


class SourceFirst:
    """A finder that sees only NAME.py, so that the shared object beside it is never found."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of one of our modules that has a source file; None leaves it to the other finders."""
        if name.startswith(OURS):
            for folder in path or ():
                source = os.path.join(folder, name.rpartition(".")[2] + ".py")
                if os.path.isfile(source):
                    return spec_from_file_location(name, source)
        return None


def install() -> None:
    """Put the finder first, once, if the environment asks for it."""
    if plain_wanted() and SourceFirst not in sys.meta_path:
        sys.meta_path.insert(0, SourceFirst)
