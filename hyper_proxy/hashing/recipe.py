"""What a distribution is built from, and how the options behind its name or behind a hash's name are read.

A name is `base` or `base-option-option`, for example `weibo_range-256` or `fnv1a_64-unsigned`.
"""

from __future__ import annotations

from dataclasses import dataclass

from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.names import Server


@dataclass(frozen=True, slots=True)
class Recipe:
    """The ingredients of a placement.

    name       as it stands in the configuration, for messages
    options    what followed the name, split at "-"
    hash       the hash function, None where the distribution has its own
    hash_tag   empty or two bytes
    servers    at least one
    """

    name: str
    options: tuple[str, ...]
    hash: Hash | None
    hash_tag: bytes
    servers: tuple[Server, ...]

    def number(self, default: int, least: int = 1) -> int:
        """The only option, a decimal number of at least `least`; `default` when there is none."""
        if not self.options:
            return default
        text = self.options[0]
        if len(self.options) > 1 or not (text.isascii() and text.isdigit()) or int(text) < least:
            raise HashingError(f"'{self.name}': what follows the name must be one number of at least {least}")
        return int(text)
