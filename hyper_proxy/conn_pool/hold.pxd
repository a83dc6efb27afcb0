from hyper_proxy.common.load cimport Load


cdef class Hold:
    cdef bint held
    cdef object timer
    cdef object release

    cpdef bint begin(self, Py_ssize_t size, double at) except -1
    cpdef bint end(self) except -1
