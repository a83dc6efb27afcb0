# cython: language_level=3, annotation_typing=False
"""What the columns of a table can hold, byte for byte: how keys, values, flags, times and versions become parameters.

A column that would change a value on its way (pad it, fold its case, round it) is refused, or what it would change is.
Everything is read as the bytes that the server sends (conn_pool/sql_connection.py).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Protocol

from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.keyvalue import EXPIRED
from hyper_proxy.storage.numbers import parse_int64

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
BINARY = ("varbinary", "tinyblob", "blob", "mediumblob", "longblob")
TEXT = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
MILLISECOND_DIGITS = 3

_SIZE = re.compile(r"\((\d+)(?:,(\d+))?\)")


class Misfit(Exception):
    """The column can't be used for what the configuration names it for; the text says why."""


@dataclass(frozen=True, slots=True)
class Column:
    """A row of information_schema.COLUMNS: `type` is DATA_TYPE, as "int", `full` COLUMN_TYPE, as "int(10) unsigned".

    place         for errors, in front of the label: "instance 'user', 10.0.0.7:3306, table profile: "
    has_default   may an INSERT leave it out?
    is_generated  does the server make it from other columns?
    """

    name: str
    type: str
    full: str
    collation: str
    nullable: bool
    place: str = ""
    has_default: bool = True
    is_generated: bool = False

    @property
    def is_integer(self) -> bool:
        return self.type in INTEGER_BITS

    @property
    def label(self) -> str:
        """For errors: "column 'uid' (int(10) unsigned)"."""
        return f"column '{self.name}' ({self.full}{', ' + self.collation if self.collation else ''})"

    def refuse(self, text: str) -> ClientError:
        """The error of a client whose value it does not take."""
        return ClientError(f"{self.place}{self.label} {text}")

    def size(self, number: int) -> int:
        """The number in the parentheses of the type, counted from 0."""
        found = _SIZE.search(self.full)
        return int(found[number + 1] or 0) if found else 0


class Codec(Protocol):
    """Bytes of a key or value to a parameter, and back."""

    def encode(self, data: bytes) -> bytes | str | int:
        """The parameter; raises ClientError when the column could not give it back as it is."""

    def decode(self, raw: bytes) -> bytes:
        """What the server sent, as the clients know it."""


@dataclass(frozen=True, slots=True)
class Binary:
    """Any bytes."""

    def encode(self, data: bytes) -> bytes:
        return data

    def decode(self, raw: bytes) -> bytes:
        return raw


@dataclass(frozen=True, slots=True)
class FixedBinary:
    """BINARY(n): anything shorter would come back padded."""

    column: Column
    length: int

    def encode(self, data: bytes) -> bytes:
        if len(data) != self.length:
            raise self.column.refuse(f"holds exactly {self.length} bytes, not {len(data)}")
        return data

    def decode(self, raw: bytes) -> bytes:
        return raw


@dataclass(frozen=True, slots=True)
class Text:
    """Text of any character set, UTF-8 over the connection. `strict`: spaces at the end do not count, or get lost."""

    column: Column
    strict: bool

    def encode(self, data: bytes) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise self.column.refuse("holds text, and this is not UTF-8") from None
        if self.strict and data.endswith(b" "):
            raise self.column.refuse("does not keep spaces at the end")
        return text

    def decode(self, raw: bytes) -> bytes:
        return raw.rstrip(b" ") if self.strict else raw


@dataclass(frozen=True, slots=True)
class Integers:
    """Whole numbers, in their shortest decimal form."""

    column: Column
    low: int
    high: int

    def encode(self, data: bytes) -> int:
        number = int(data) if data.isdigit() and data[:1] != b"0" and len(data) <= 20 else parse_int64(data)
        if number is None or not self.low <= number <= self.high:
            raise self.column.refuse(f"holds whole numbers from {self.low} to {self.high}")
        return number

    def decode(self, raw: bytes) -> bytes:
        return b"%d" % int(raw)  # ZEROFILL writes zeros in front


def key_codec(column: Column) -> Codec:
    """Raises Misfit when the table could take two keys for one."""
    codec = value_codec(column)
    if isinstance(codec, Text):
        if not column.collation.endswith("_bin"):
            raise Misfit(f"{column.label} takes different keys for the same: it must be VARBINARY, or have a collation "
                         "that ends in _bin")
        return Text(column, not _keeps_spaces(column))
    return codec


def value_codec(column: Column) -> Codec:
    """Raises Misfit when the type does not keep what it is given."""
    if column.type in BINARY:
        return Binary()
    if column.type == "binary":
        return FixedBinary(column, column.size(0))
    if column.type in TEXT:
        return Text(column, column.type == "char")
    if column.is_integer:
        return Integers(column, *_range(column))
    raise Misfit(f"{column.label} does not keep bytes as they are: binary, text and integer types do")


def _keeps_spaces(column: Column) -> bool:
    nopad = "_nopad_" in column.collation or column.collation in ("utf8mb4_0900_bin", "binary")
    return nopad and column.type != "char"


def _range(column: Column) -> tuple[int, int]:
    bits = INTEGER_BITS[column.type]
    return (0, 2**bits - 1) if "unsigned" in column.full else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def check_number(column: Column, highest: int) -> None:
    """Raises Misfit unless it is an integer column that reaches so far."""
    if not column.is_integer or _range(column)[1] < highest:
        raise Misfit(f"{column.label} must be an integer that can be {highest}")


@dataclass(frozen=True, slots=True)
class Times:
    """Times of expiry, in unix seconds. `whole`: without fraction, then rounded up. NULL and 0 are never."""

    whole: bool
    nullable: bool

    def encode(self, expires_at: float | None) -> float | int | None:
        if expires_at is None:
            return None if self.nullable else 0
        expires_at = max(expires_at, EXPIRED)  # 0 would be never
        return math.ceil(expires_at) if self.whole else expires_at

    def decode(self, raw: bytes | None) -> float | None:
        return float(raw or 0) or None


def times(column: Column) -> Times:
    """Raises Misfit."""
    exact = column.type == "double" or (column.type == "decimal" and column.size(1) >= MILLISECOND_DIGITS)
    if not exact:
        check_number(column, 2**31 - 1)
    return Times(not exact, column.nullable)
