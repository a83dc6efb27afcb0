from hyper_proxy.hashing.placement cimport Placement


cdef class Sum(Placement):
    cdef readonly list parts
    cdef list offsets
    cpdef Py_ssize_t which(self, bytes buf, Py_ssize_t start, Py_ssize_t end)


cdef class Product(Placement):
    cdef readonly list parts
