"""A fleet with the HTTP front for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.front.http.web import Web


@pytest.fixture(scope="module")
def _web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with ExitStack() as stack:
        yield Web(stack, tmp_path_factory.mktemp("web"))


@pytest.fixture
def web(_web: Web) -> Web:
    """Without keys."""
    for key in _web.redis.scan_iter():
        _web.redis.delete(key)
    return _web
