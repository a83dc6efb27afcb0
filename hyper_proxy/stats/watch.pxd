cimport cython

from hyper_proxy.stats.access cimport Scribe
from hyper_proxy.stats.hotkeys cimport BigKeys, HotKeys


@cython.final
cdef class Watch:
    cdef readonly object instance
    cdef readonly object journal
    cdef readonly Scribe scribe
    cdef readonly HotKeys hot
    cdef readonly BigKeys big
    cdef public long long slow
    cdef public long long unlogged
    cdef public long long slow_us
    cdef public long long countdown
    cdef long long span
    cdef readonly double keys_due
    cdef double log_due
    cdef double log_every
    cdef double aged_at
    cdef long long seed
    cdef int picked
    cpdef bint advance(self) except -1
    cpdef Py_ssize_t pick(self, Py_ssize_t count) except -2
    cpdef count_key(self, bytes key)
    cpdef restart(self)
    cdef double step(self, double mean)
