"""Two rooms of real servers behind one instance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.kit.rooms import Site


@pytest.fixture
def build(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes a Site."""
    with ExitStack() as stack:
        yield lambda kind, *more, **options: Site(stack, tmp_path, kind, *more, **options)
