"""The rules by which the database of a key of Lushan is found, as records of model.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LushanFixed:
    """Every key is in this database."""

    db: int


@dataclass(frozen=True, slots=True)
class LushanHashed:
    """The database is hash(key) modulo count; `hash` is a name of hyper_proxy.hashing.HASHES."""

    hash: str
    count: int


@dataclass(frozen=True, slots=True)
class LushanPrefixed:
    """The database is looked up by the text before the first separator; `default` None refuses all other keys."""

    separator: str
    dbs: tuple[tuple[str, int], ...]
    default: int | None = None


LushanDb = LushanFixed | LushanHashed | LushanPrefixed
