from hyper_proxy.common.clock cimport cpu, now


cdef extern from "sched.h":
    int sched_yield()


cdef class Load:
    cdef public bint generous
    cdef readonly bint busy
    cdef double looked_at
    cdef double used_s

    cpdef bint is_busy(self, double at) except -1
    cpdef give_way(self)
