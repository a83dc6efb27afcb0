from hyper_proxy.stats.histogram cimport Histogram


cdef class Flights:
    cdef object open
    cdef Histogram latency

    cpdef depart(self, Py_ssize_t sent, double at)
    cpdef arrive(self, Py_ssize_t answered, Py_ssize_t count, double at)
    cpdef bint any(self)
    cpdef double oldest(self)
    cpdef forget(self)
