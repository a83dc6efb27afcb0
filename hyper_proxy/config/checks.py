"""The kinds of values a setting can have. Each reads one toml value and says in words what it accepts.

A kind raises Bad with the code and text of a finding; a list notes a finding for each bad element and reads it as None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from hyper_proxy.config.addresses import read_listen, read_path
from hyper_proxy.config.model import GIB, KIB, MIB, Listen
from hyper_proxy.config.notes import suggest
from hyper_proxy.config.place import Bad, Place, wrong_type

_SIZE = re.compile(r"([0-9]+) ?(?:([KMG])(?:I?B)?|B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": KIB, "M": MIB, "G": GIB}


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number of a range."""

    low: int
    high: int

    @property
    def accepts(self) -> str:
        return f"integer, {self.low} to {self.high}"

    def read(self, value: object, place: Place) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_type(value, "an integer")
        if not self.low <= value <= self.high:
            raise Bad("HP106", f"{value} is not between {self.low} and {self.high}")
        return value


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a range, fractions allowed."""

    low: float
    high: float
    wanted: str = "a number"

    @property
    def accepts(self) -> str:
        return f"number, {self.low:.15g} to {self.high:.15g}"

    def read(self, value: object, place: Place) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong_type(value, self.wanted)
        if not math.isfinite(value) or not self.low <= value <= self.high:
            raise Bad("HP106", f"{value} is not between {self.low:.15g} and {self.high:.15g}")
        return float(value)


def seconds(low: float, high: float) -> Number:
    """A time."""
    return Number(low, high, "a number of seconds")


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment, in unix seconds."""

    accepts: str = "a date with time and zone, such as 2030-01-31T02:00:00Z"

    def read(self, value: object, place: Place) -> float:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise Bad("HP105", f"{self.accepts}, is wanted here")
        return value.timestamp()


@dataclass(frozen=True, slots=True)
class Switch:
    """Yes or no."""

    accepts: str = "true or false"

    def read(self, value: object, place: Place) -> bool:
        if not isinstance(value, bool):
            raise wrong_type(value, "true or false")
        return value


@dataclass(frozen=True, slots=True)
class Size:
    """A number of bytes: an integer, or a string with a unit; K, M and G are powers of 1024, as in redis and nginx."""

    low: int
    high: int

    @property
    def accepts(self) -> str:
        return f'bytes, integer or "64KB", "16MB", "1GB" (of 1024), {show_size(self.low)} to {show_size(self.high)}'

    def read(self, value: object, place: Place) -> int:
        if isinstance(value, str):
            match = _SIZE.fullmatch(value.strip())
            if match is None:
                raise Bad("HP106", f"'{value}' is not a size such as 4096, \"64KB\" or \"100MB\"")
            value = int(match[1]) * _UNITS[(match[2] or "").upper()]
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong_type(value, "a size (an integer or a string with a unit)")
        if not self.low <= value <= self.high:
            raise Bad("HP106", f"{show_size(value)} is not between {show_size(self.low)} and {show_size(self.high)}")
        return value


def show_size(size: int) -> str:
    """A number of bytes as people write it: 16MB."""
    for unit, factor in (("GB", GIB), ("MB", MIB), ("KB", KIB)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some names; `later` are those the design has and this version does not."""

    names: Sequence[str]
    later: Sequence[str] = ()

    @property
    def accepts(self) -> str:
        return ", ".join(f'"{name}"' for name in self.names)

    def read(self, value: object, place: Place) -> str:
        if not isinstance(value, str):
            raise wrong_type(value, "a string")
        if value in self.names:
            return value
        if value in self.later:
            raise Bad("HP108", f"'{value}' is not served by this version yet; there are: {', '.join(self.names)}")
        raise Bad("HP106", f"'{value}' is none of {', '.join(self.names)}{suggest(value, self.names)}")


@dataclass(frozen=True, slots=True)
class Known:
    """A name that other code knows: `fault` says what is wrong with it. empty: "" is good, too."""

    fault: Callable[[str], str | None]
    accepts: str
    empty: bool = False

    def read(self, value: object, place: Place) -> str:
        if not isinstance(value, str):
            raise wrong_type(value, "a string")
        fault = None if self.empty and not value else self.fault(value)
        if fault:
            raise Bad("HP106", fault)
        return value


@dataclass(frozen=True, slots=True)
class Text:
    """A string of a form."""

    pattern: str
    words: str
    secret: bool = False

    @property
    def accepts(self) -> str:
        return f"string: {self.words}"

    def read(self, value: object, place: Place) -> str:
        if not isinstance(value, str):
            raise wrong_type(value, "a string")
        if not re.fullmatch(self.pattern, value):
            raise Bad("HP106", f"{'the value' if self.secret else repr(value)} is not {self.words}")
        return value


@dataclass(frozen=True, slots=True)
class FilePath:
    """A file, relative to the folder of the configuration; "" for none."""

    accepts: str = 'string: path of a file, relative to the folder of the configuration, or ""'

    def read(self, value: object, place: Place) -> str:
        if not isinstance(value, str):
            raise wrong_type(value, "a string")
        if not value:
            return ""
        try:
            return read_path(value, place.folder)
        except ValueError as error:
            raise Bad("HP106", str(error)) from None


@dataclass(frozen=True, slots=True)
class Address:
    """One place to listen on."""

    accepts: str = 'string: "host:port" or "unix:/path"'

    def read(self, value: object, place: Place) -> Listen:
        if not isinstance(value, str):
            raise wrong_type(value, "a string")
        return listen_item(value)


@dataclass(frozen=True, slots=True)
class Strings:
    """A list of strings, each turned into something by `item` (which raises Bad)."""

    item: Callable[[str], object]
    words: str
    empty: bool = False

    @property
    def accepts(self) -> str:
        return f"list of strings: {self.words}"

    def read(self, value: object, place: Place) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise wrong_type(value, "a list of strings")
        if not value and not self.empty:
            raise Bad("HP106", "the list is empty")
        read: list[object] = []
        for index, text in enumerate(value):
            try:
                if not isinstance(text, str):
                    raise wrong_type(text, "a string")
                read.append(self.item(text))
            except Bad as bad:
                place.bad(bad, index)
                read.append(None)
        return tuple(read)


def listen_item(text: str) -> Listen:
    """An address of `listen`."""
    try:
        return read_listen(text)
    except ValueError as error:
        raise Bad("HP109", str(error)) from None


def master_item(text: str) -> str:
    """The name of a master, as sentinels know it."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", text):
        raise Bad("HP106", f"{text!r} is no name of letters, digits, '_', '.' and '-' that sentinels could know")
    return text


def command_item(text: str) -> str:
    """An element of `allow`: a command's name, in upper case."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", text):
        raise Bad("HP106", f"{text!r} is not the name of a command")
    return text.upper()
