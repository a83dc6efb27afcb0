"""What it takes to read a value: where it stands, what is wrong with it, and what a kind of values is (checks.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Protocol

from hyper_proxy.config.notes import Notes, Path


class Absent(Enum):
    """Marks a setting that has no default: the file must say it."""

    REQUIRED = "required"


REQUIRED = Absent.REQUIRED


class Bad(Exception):
    """A value that cannot be used: the code and text of the finding."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: its path, the folder of the file, and where findings go."""

    path: Path
    folder: str
    notes: Notes

    def bad(self, bad: Bad, *below: str | int) -> None:
        """Notes a finding here or at a part of the value."""
        self.notes.add((*self.path, *below), bad.code, bad.message)

    def below(self, key: str) -> Place:
        """Where a part of the value is."""
        return replace(self, path=(*self.path, key))

    def part(self, table: Mapping[str, object], key: str, kind: Kind, instead: object) -> Any:
        """One value of a table that stands here; what is wrong with it is noted, and `instead` keeps the reading
        going."""
        try:
            return kind.read(table[key], self.below(key))
        except Bad as bad:
            self.bad(bad, key)
            return instead


class Kind(Protocol):
    """What a value may be."""

    @property
    def accepts(self) -> str:
        """The values accepted, in words, for messages and the reference."""

    def read(self, value: object, place: Place) -> object:
        """The value as the model holds it; raises Bad."""


def type_name(value: object) -> str:
    """What toml calls the type of this value."""
    names = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "an array", dict: "a table"}
    return names.get(type(value), "a date or time")


def wrong_type(value: object, wanted: str) -> Bad:
    return Bad("HP105", f"{wanted} is wanted here, not {type_name(value)}")
