# cython: language_level=3, annotation_typing=False
"""A client's value and the columns that keep it: one column as it is, or several as a JSON object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

from hyper_proxy.common.errors import ClientError
from hyper_proxy.conn_pool.sql_connection import DEFAULT, Parameter
from hyper_proxy.storage.objects import parse_object, unknown_field
from hyper_proxy.storage.sql_columns import Column, value_codec
from hyper_proxy.storage.sql_fields import field_of


class Value(Protocol):
    """How a value becomes parameters, one for each of its columns, and how a row becomes a value."""

    def encode(self, data: bytes) -> list[Parameter]:
        """Raises ClientError when the columns could not give it back."""

    def decode(self, raws: Sequence[bytes | None]) -> bytes | None:
        """None when the row has no value."""


class OneColumn:
    """The column has the bytes of the value. Raises Misfit."""

    def __init__(self, column: Column) -> None:
        self.codec = value_codec(column)

    def encode(self, data: bytes) -> list[Parameter]:
        return [self.codec.encode(data)]

    def decode(self, raws: Sequence[bytes | None]) -> bytes | None:
        return None if raws[0] is None else self.codec.decode(raws[0])


class Objects:
    """The columns are members of a JSON object, in this order; `columns` with the names they have there. Raises Misfit.

    null is NULL; a member that is left out becomes what the column has by default. A row whose columns are all NULL has
    no value.
    """

    def __init__(self, columns: Sequence[tuple[str, Column]]) -> None:
        self.fields = {name: field_of(column) for name, column in columns}
        self.heads = [json.dumps(name) + ":" for name in self.fields]

    def encode(self, data: bytes) -> list[Parameter]:
        members = parse_object(data)
        for name in members:
            if name not in self.fields:
                raise unknown_field(name, self.fields)
        if all(member is None for member in members.values()):
            raise ClientError(f"the object gives no column a value; there are {', '.join(self.fields)}")
        return [self._parameter(name, members) for name in self.fields]

    def _parameter(self, name: str, members: dict[str, Any]) -> Parameter:
        field = self.fields[name]
        column = field.column
        member = members.get(name)
        if member is not None:
            return field.take(member)
        if name in members:
            if not column.nullable:
                raise column.refuse("can't be null")
            return None
        if not column.has_default:
            raise column.refuse(f"has no default, so '{name}' must be given")
        return DEFAULT

    def decode(self, raws: Sequence[bytes | None]) -> bytes | None:
        if all(raw is None for raw in raws):
            return None
        members = [
            head + ("null" if raw is None else field.give(raw))
            for head, field, raw in zip(self.heads, self.fields.values(), raws, strict=True)
        ]
        return f"{{{','.join(members)}}}".encode()
