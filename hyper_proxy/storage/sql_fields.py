"""Columns as members of a JSON object: which member a column makes, and which members it takes.

Nothing is guessed and nothing is rounded: numbers stay the decimals that they are, text is text, and bytes that are no
text are written {"base64": "..."}. A column whose type would give back something else than it got is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.errors import ClientError
from hyper_proxy.storage.objects import BASE64, Number, bytes_of, write_member
from hyper_proxy.storage.sql_columns import TEXT, Codec, Column, Integers, Misfit, value_codec

Parameter = bytes | str | int | float | None

YEARS = (1901, 2155)  # what a YEAR holds, beside 0000

_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?")
_DOUBLE = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MOMENTS = {
    "date": r"\d{4}-\d\d-\d\d",
    "datetime": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "timestamp": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
    "time": r"-?\d{2,3}:\d\d:\d\d",
}
_FORMS = {"date": "YYYY-MM-DD", "datetime": "YYYY-MM-DD hh:mm:ss", "timestamp": "YYYY-MM-DD hh:mm:ss",
          "time": "hh:mm:ss"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """A column as a member: `take` makes its parameter of what JSON says, `give` JSON of what the server sends.

    `take` gets str, Number, bool, dict or list, and raises ClientError; NULL is null, and passes by both.
    """

    column: Column
    take: Callable[[Any], Parameter]
    give: Callable[[bytes], str]


def field_of(column: Column) -> Field:
    """Raises Misfit."""
    if column.is_generated:
        raise Misfit(f"{column.label} is made by the server from others: it can't be a part of a value")
    if column.type in _MOMENTS:
        return _moment(column)
    if column.type == "decimal":
        return _decimal(column)
    if column.type == "double":
        return _double(column)
    if column.type == "year":
        return _number(column, Integers(column, *YEARS))
    try:
        codec = value_codec(column)
    except Misfit:
        raise Misfit(f"{column.label} can't be a part of a JSON object: integers, DECIMAL, DOUBLE, text, binary types "
                     "and times can") from None
    return _number(column, codec) if column.is_integer else _bytes(column, codec)


def _refuse(column: Column, wanted: str, got: object) -> ClientError:
    kinds = {Number: "a number", str: "a string", bool: "true or false", dict: "an object", list: "an array"}
    return column.refuse(f"takes {wanted}, not {kinds[type(got)]}")


def _number(column: Column, codec: Codec) -> Field:
    def take(member: Any) -> Parameter:
        if not isinstance(member, str):
            raise _refuse(column, "a number", member)
        return codec.encode(member.encode("utf-8", "surrogatepass"))

    return Field(column, take, lambda raw: codec.decode(raw).decode())


def _bytes(column: Column, codec: Codec) -> Field:
    """Text, or bytes: then base64 is taken where they are no text."""
    wanted = "a string" if column.type in TEXT else f'a string, or {{"{BASE64}": "..."}}'

    def take(member: Any) -> Parameter:
        data = None if isinstance(member, Number) else bytes_of(member)
        if data is None:
            raise _refuse(column, wanted, member)
        return codec.encode(data)

    return Field(column, take, lambda raw: write_member(codec.decode(raw)))


def _decimal(column: Column) -> Field:
    digits, places = column.size(0), column.size(1)

    def take(member: Any) -> Parameter:
        found = _DECIMAL.fullmatch(member) if isinstance(member, str) else None
        if found is None:
            raise _refuse(column, "a decimal number", member)
        whole, fraction = found[1].lstrip("0"), found[2] or ""
        if len(whole) > digits - places or len(fraction) > places:
            raise column.refuse(f"holds {digits - places} digits before the point and {places} behind it")
        if "unsigned" in column.full and found[0].startswith("-"):
            raise column.refuse("holds no number below 0")
        return str(member)

    def give(raw: bytes) -> str:
        sign, number = ("-", raw[1:]) if raw.startswith(b"-") else ("", raw)
        whole, point, fraction = number.decode().partition(".")
        return f"{sign}{whole.lstrip('0') or '0'}{point}{fraction}"  # ZEROFILL writes zeros in front

    return Field(column, take, give)


def _double(column: Column) -> Field:
    if column.size(0):
        raise Misfit(f"{column.label} rounds to a number of digits: DOUBLE without them does not")

    def take(member: Any) -> Parameter:
        number = float(member) if isinstance(member, str) and _DOUBLE.fullmatch(member) else math.inf
        if math.isinf(number):
            raise _refuse(column, "a number that a DOUBLE can be", member)
        return number

    return Field(column, take, lambda raw: raw.decode().lstrip("+"))


def _moment(column: Column) -> Field:
    places = column.size(0)
    wanted = re.compile(_MOMENTS[column.type] + (rf"\.\d{{{places}}}" if places else ""), re.ASCII)
    form = _FORMS[column.type] + ("." + "f" * places if places else "")

    def take(member: Any) -> Parameter:
        if type(member) is not str or not wanted.fullmatch(member):
            raise column.refuse(f"takes a string of the form {form}")
        return member

    return Field(column, take, lambda raw: write_member(raw))

