"""Fixtures of the redis protocol's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.kit.servers import Running
from tests.protocol.raw import Raw


@pytest.fixture
def connect(redis_nodes: list[Running]) -> Iterator[Callable[[int], Raw]]:
    """`connect(n)`: a raw connection to the n-th of three empty real servers, closed at the test's end."""
    opened: list[Raw] = []

    def to(node: int) -> Raw:
        opened.append(Raw(redis_nodes[node].port))
        return opened[-1]

    yield to
    for connection in opened:
        connection.close()


@pytest.fixture
def server(connect: Callable[[int], Raw]) -> Raw:
    """A raw connection to a real, empty server."""
    return connect(0)
