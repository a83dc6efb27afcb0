cimport cython


@cython.final
cdef class HotKeys:
    cdef dict places
    cdef list keys
    cdef double[64] counts
    cdef double[64] errors
    cpdef add(self, bytes key, double weight)


@cython.final
cdef class BigKeys:
    cdef dict rows
    cdef Py_ssize_t floor
    cdef double at
    cpdef add(self, bytes key, Py_ssize_t size)
