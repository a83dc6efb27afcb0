# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What is now: every session looks at it with every request, so it is an attribute that C code reads."""

from __future__ import annotations

from typing import Any

import cython


@cython.cclass
class Present:
    """snapshot: the configuration that new requests see."""

    snapshot: Any

    def __init__(self, snapshot: Any) -> None:
        self.snapshot = snapshot
