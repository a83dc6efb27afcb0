"""The key-value storages under the translations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hyper_proxy.storage.keyvalue import KeyValue
from tests.kit.key_values import KINDS, open_mysql, open_sqlite


@pytest.fixture(params=KINDS)
def kv(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KeyValue]:
    """Each kind, empty."""
    if request.param == "sqlite":
        with open_sqlite(tmp_path) as kv:
            yield kv
        return
    with open_mysql(request.getfixturevalue("mariadb")) as kv:
        yield kv
