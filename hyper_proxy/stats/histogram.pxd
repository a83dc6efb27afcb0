cimport cython


@cython.final
cdef class Histogram:
    cdef readonly unsigned long long sum_us
    cdef unsigned long long[376] cells
    cpdef int add(self, long long us, long long n=*)
