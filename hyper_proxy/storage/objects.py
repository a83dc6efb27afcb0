"""Values that are JSON objects, as a storage that keeps their members apart and a front that shows them both know them.

A member is a string, a number (Number), null or {"base64": "..."}: bytes that are no text.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from hyper_proxy.common.errors import ClientError

BASE64 = "base64"


class Number(str):
    """A number of a JSON text, as it was written there."""

    __slots__ = ()


def parse_object(data: bytes) -> dict[str, Any]:
    """The members of a JSON object, each named once. Raises ClientError."""
    try:
        members = json.loads(
            data.decode(), parse_int=Number, parse_float=Number, parse_constant=_refuse, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:  # ValueError: neither UTF-8 nor JSON
        raise ClientError(f"the value must be a JSON object: {error}") from None
    if not isinstance(members, dict):
        raise ClientError("the value must be a JSON object, whose members are columns")
    return members


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is named twice")
    return members


def write_object(members: Mapping[str, Any]) -> bytes:
    """The JSON text of members; of their texts, see `write_member`."""
    return f"{{{','.join(f'{write_member(name)}:{write_member(one)}' for name, one in members.items())}}}".encode()


def write_member(member: Any) -> str:
    """One of them: bytes are a string if they are UTF-8, else base64."""
    if isinstance(member, Number):
        return member
    if isinstance(member, bytes):
        member = member_of(member)
    return json.dumps(member, ensure_ascii=False, separators=(",", ":"))


def member_of(data: bytes) -> str | dict[str, str]:
    """Bytes as a member."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {BASE64: base64.b64encode(data).decode()}


def bytes_of(member: Any) -> bytes | None:
    """A string, a number or base64 as bytes; None for what is none of them."""
    if isinstance(member, str):
        return member.encode("utf-8", "surrogatepass")
    if isinstance(member, dict) and list(member) == [BASE64] and isinstance(member[BASE64], str):
        try:
            return base64.b64decode(member[BASE64], validate=True)
        except binascii.Error:
            return None
    return None


def unknown_field(name: str, names: Iterable[str]) -> ClientError:
    """The error of a member that is no column."""
    shown = "".join(char if char.isprintable() else "?" for char in name[:64])
    return ClientError(f"'{shown}' is no column of this instance's values; there are {', '.join(names)}")
