cimport cython


@cython.final
cdef class Cells:
    cdef readonly tuple names
    cdef long long[24] values
    cpdef long long add(self, Py_ssize_t index, long long n)
