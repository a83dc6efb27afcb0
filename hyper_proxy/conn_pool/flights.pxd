from hyper_proxy.common.clock cimport now
from hyper_proxy.stats.histogram cimport Histogram


cdef class Flights:
    cdef Py_ssize_t first_end
    cdef double first_at
    cdef object open
    cdef Histogram latency
    cdef long long[4] by_class
    cdef double opened_at
    cdef double ready_at
    cdef readonly double answering_at
    cdef bint refusing
    cdef bytes written
    cdef long long written_epoch

    cpdef depart(self, Py_ssize_t sent, double at)
    cpdef arrive(self, Py_ssize_t answered, Py_ssize_t count, double at)
    cpdef bint any(self)
    cpdef double oldest(self)
    cpdef double connecting(self, double since)
    cpdef double departed(self, double since)
