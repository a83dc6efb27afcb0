cimport cython

from hyper_proxy.stats.histogram cimport Histogram


@cython.final
cdef class InstanceStats:
    cdef readonly tuple classes
    cdef readonly list latency
    cdef readonly dict errors
    cdef public long long bytes_in
    cdef public long long bytes_out
    cdef public long long accepted
    cdef public long long refused
    cdef public long long probes
    cdef public long long yields
    cpdef int note(self, Py_ssize_t klass, long long count, long long us)
