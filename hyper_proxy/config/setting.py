"""What a row of the table of settings is, and what rows of several sections have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hyper_proxy.config.checks import Choice, Integer, Text
from hyper_proxy.config.place import Kind

HOUR_MS = 3_600_000
DAY_S = 86_400
NAME = Text(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", "a word of letters, digits, '_', '.' and '-', at most 64 long")
SECRET = Text(r"[^\x00-\x1f\x7f]{0,512}", "at most 512 characters, none of them a control character", secret=True)
MS = Integer(1, HOUR_MS)
REDIS = ("redis",)
"""Where only redis has a meaning for a key."""


def names(*some: str) -> Choice:
    """One of these."""
    return Choice(some)


@dataclass(frozen=True, slots=True)
class ByProtocol:
    """A default that depends on the instance's protocol."""

    values: dict[str, object]

    def of(self, protocol: object) -> object:
        """That of a protocol; one that is not built in has redis'."""
        return self.values.get(str(protocol), next(iter(self.values.values())))


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of one section.

    `default` is the value as it would be written in toml. hot: a reload applies it to the workers that run, else it
    starts new ones in their place, or refuses: then it takes a `restart`.
    `only` names the protocols (of an instance) or storages (of a level) for which the key has a meaning; empty: all but
    those of `but`.
    """

    section: str
    key: str
    kind: Kind
    default: object
    help: str
    hot: bool = True
    restart: bool = False
    only: Sequence[str] = ()
    but: Sequence[str] = ()

    def fits(self, kind: str) -> bool:
        """Has the key a meaning for this protocol or storage?"""
        return kind in self.only if self.only else kind not in self.but
