"""What all tests of placement use: the vector files, keys and servers made from their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from hyper_proxy.config.model import Server

VECTORS = Path(__file__).parent / "vectors"

# What surrounds a key in the buffer: nothing of it may change the shard.
BEFORE = b"{a}#12345_|#|/x/"
AFTER = b"}5_^.#|#|"


def load(name: str) -> dict[str, Any]:
    """One vector file."""
    vectors: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text())
    return vectors


def key_of(row: dict[str, Any]) -> bytes:
    """The key of a row, from its hexadecimal form where it has one."""
    return bytes.fromhex(row["key_hex"]) if "key_hex" in row else row["key"].encode()


def servers(addresses: Iterable[str], weights: Iterable[int] | None = None) -> list[Server]:
    """Servers of addresses host:port; a text without a port is an alias."""
    found = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        found.append(Server(host=host, port=int(port)) if host else Server(host="h", port=1, name=address))
    if weights is None:
        return found
    return [
        Server(host=server.host, port=server.port, name=server.name, weight=weight)
        for server, weight in zip(found, weights, strict=True)
    ]


def numbered(count: int) -> list[Server]:
    """Servers of equal weight, 10.0.0.1:6379 and on, with aliases."""
    return [Server(host=f"10.0.0.{i % 250}", port=6379 + i, name=f"node{i}") for i in range(1, count + 1)]


def shard(placement: Any, key: bytes) -> int:
    """Where the key goes; the same alone and amid other bytes."""
    alone: int = placement.locate(key, 0, len(key))
    amid = placement.locate(BEFORE + key + AFTER, len(BEFORE), len(BEFORE) + len(key))
    assert alone == amid, f"{key!r}: shard {alone} alone, {amid} amid other bytes"
    return alone


def hash_value(hashing: ModuleType, name: str, key: bytes) -> int:
    """The value of a named hash; the same alone and amid other bytes."""
    function = hashing.build_hash(name)
    alone: int = function.value(key, 0, len(key))
    amid = function.value(BEFORE + key + AFTER, len(BEFORE), len(BEFORE) + len(key))
    assert alone == amid, f"{name} of {key!r}: {alone} alone, {amid} amid other bytes"
    return alone


def signed(value: int) -> int:
    """64 bits as a signed number."""
    return value - 2**64 if value >> 63 else value
