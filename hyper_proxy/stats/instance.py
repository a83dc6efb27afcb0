# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The counters of one instance in one worker.

On the request's path:      from hyper_proxy.stats.instance cimport InstanceStats      (in the user's .pxd)
                            cdef InstanceStats stats
                            stats.note(klass, count, microseconds)                     # a C call when compiled
                            stats.bytes_in += n                                        # a C addition when compiled
"""

import cython

from hyper_proxy.stats.histogram import Histogram


@cython.final
@cython.cclass
class InstanceStats:
    """`classes` names the command classes, by their number; everything starts at 0.

    bytes_in, bytes_out, accepted, refused, probes, yields are for the owner to add to; table.py says what they mean.
    """

    def __init__(self, classes: tuple) -> None:
        self.classes = classes
        self.latency: list = [Histogram() for _ in classes]
        self.errors: dict = {}
        self.bytes_in = 0
        self.bytes_out = 0
        self.accepted = 0
        self.refused = 0
        self.probes = 0
        self.yields = 0

    @cython.ccall
    def note(self, klass: cython.Py_ssize_t, count: cython.longlong, us: cython.longlong) -> cython.int:
        """`count` requests of this class were answered, `us` microseconds after they were read."""
        histogram: Histogram = self.latency[klass]
        histogram.add(us, count)
        return 0

    def error(self, kind: str) -> None:
        """A client was told of an error of this kind."""
        self.errors[kind] = self.errors.get(kind, 0) + 1

    def snapshot(self) -> dict:
        """What travels as JSON; the owner adds the gauges `clients` and `in_flight`, and `nodes`."""
        named = list(zip(self.classes, self.latency, strict=True))
        return {
            "requests": {name: histogram.count() for name, histogram in named},
            "latency_us": {name: histogram.snapshot() for name, histogram in named},
            "errors": dict(self.errors),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "accepted": self.accepted,
            "refused": self.refused,
            "probes": self.probes,
            "yields": self.yields,
        }
