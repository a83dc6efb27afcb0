# cython: language_level=3, annotation_typing=False
"""Keys and rows in as few statements as they fit into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from hyper_proxy.conn_pool.sql_connection import Parameter

T = TypeVar("T")

BATCH_KEYS = 500  # of one statement
ROOM_BYTES = 2000  # of a statement, beside its rows: names of columns ...
ROW_BYTES = 200  # ... of a row beside its texts, a byte of which takes two, for it is sent in hexadecimal,
FIELD_BYTES = 30  # ... and of each of its fields


def batches_of(keys: Iterable[T]) -> Iterator[list[T]]:
    """Keys of one statement each."""
    rest = iter(keys)
    while batch := list(islice(rest, BATCH_KEYS)):
        yield batch


def by_size(rows: Iterable[list[Parameter]], max_bytes: int) -> Iterator[list[list[Parameter]]]:
    """Rows that fit into one statement together; one that is too large alone is left to the server's limit."""
    batch: list[list[Parameter]] = []
    size = ROOM_BYTES
    for row in rows:
        texts = sum(2 * len(field) for field in row if isinstance(field, bytes | str))
        cost = ROW_BYTES + FIELD_BYTES * len(row) + texts
        if batch and (len(batch) == BATCH_KEYS or size + cost > max_bytes):
            yield batch
            batch, size = [], ROOM_BYTES
        batch.append(row)
        size += cost
    if batch:
        yield batch
