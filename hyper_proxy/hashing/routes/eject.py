# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""eject: beside the home of a key, where it would be if its home did not exist."""

from __future__ import annotations

from collections.abc import Sequence

import cython

from hyper_proxy.config.model import Level, Server
from hyper_proxy.hashing.build import build

if not cython.compiled:
    from hyper_proxy.hashing.placement import Placement
    from hyper_proxy.hashing.routes.join import Product


@cython.cclass
class Ejecting(Product):
    """A product of a placement with itself; the second part leaves out the server that the first one has chosen.

    The placements without a server are built when the first of its keys comes.
    """

    def __init__(self, level: Level) -> None:
        self.level = level
        self.home: Placement = _build(level, level.servers)
        self.others: dict = {}  # home -> the placement without it
        super().__init__([self.home, self.home])

    @cython.ccall
    def locate(self, buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
        count: cython.Py_ssize_t = self.home.shards
        home: cython.Py_ssize_t = self.home.locate(buf, start, end)
        spare: cython.Py_ssize_t = home
        if count > 1:
            without: Placement | None = self.others.get(home)
            if without is None:
                servers = self.level.servers
                without = self.others[home] = _build(self.level, [*servers[:home], *servers[home + 1 :]])
            spare = without.locate(buf, start, end)
            if spare >= home:
                spare += 1
        return home * count + spare

    def everywhere(self, key: bytes) -> list[int]:
        return [self.locate(key, 0, len(key))]


def _build(level: Level, servers: Sequence[Server]) -> Placement:
    return build(level.hash, level.distribution, level.hash_tag, servers)
