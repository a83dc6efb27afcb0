cdef class Placement:
    cdef readonly Py_ssize_t shards
    cpdef Py_ssize_t locate(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
