# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""class: reads go to one child, all other commands to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import cython

from hyper_proxy.stats.classes import READ

if not cython.compiled:
    from hyper_proxy.common.gather import Gather
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.conn_pool.routes.route import RouteLane

if TYPE_CHECKING:
    from hyper_proxy.common.errors import BackendError
    from hyper_proxy.conn_pool.routes.route import Setting


@cython.cclass
class ClassLane(RouteLane):
    """The names of the route say which child is which."""

    def __init__(self, lanes: Sequence[Lane], setting: Setting) -> None:
        super().__init__(lanes, setting)
        self.read_at = setting.route.names.index("read")
        self.write_at = setting.route.names.index("write")

    @cython.cfunc
    def choose(self, klass: cython.Py_ssize_t) -> Lane:
        return self.lanes[self.read_at if klass == READ else self.write_at]

    @cython.ccall
    def is_full(self, klass: cython.Py_ssize_t) -> cython.bint:
        """Reads do not wait for writes, nor writes for reads."""
        return self.choose(klass).is_full(klass)

    def wait_for_room(self, klass: int) -> BackendError | None:
        return self.choose(klass).wait_for_room(klass)

    @cython.ccall
    def submit(
        self, raw: bytes | bytearray, klass: cython.Py_ssize_t, gather: Gather | None, position: cython.Py_ssize_t
    ) -> None:
        self.choose(klass).submit(raw, klass, gather, position)
