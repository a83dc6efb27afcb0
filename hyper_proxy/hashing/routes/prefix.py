# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""By the longest prefix that a key begins with."""

from __future__ import annotations

from collections.abc import Sequence

import cython

from hyper_proxy.config.model import Route
from hyper_proxy.hashing.errors import HashingError

if not cython.compiled:
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.hashing.routes.join import Sum


@cython.cclass
class ByPrefix(Sum):
    """The names of the route are the prefixes of the parts; "" is among them, so that every key has a part."""

    def __init__(self, route: Route, parts: Sequence[Placement]) -> None:
        super().__init__(parts)
        if "" not in route.names:
            raise HashingError('a prefix route needs the prefix "", which takes the keys that begin with no other one')
        # Prefix to index of its part; and the lengths of all prefixes, the longest first.
        self.by_prefix = {name.encode(): index for index, name in enumerate(route.names)}
        self.sizes = sorted({len(prefix) for prefix in self.by_prefix}, reverse=True)

    @cython.ccall
    def which(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        size: cython.Py_ssize_t
        for size in self.sizes:
            if start + size <= end:
                index = self.by_prefix.get(buf[start : start + size])
                if index is not None:
                    return index
        return self.by_prefix[b""]
