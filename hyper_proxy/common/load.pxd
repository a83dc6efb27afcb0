from hyper_proxy.common.clock cimport cpu, now


cdef class Load:
    cdef readonly bint busy
    cdef double looked_at
    cdef double used_s

    cpdef bint is_busy(self, double at) except -1
