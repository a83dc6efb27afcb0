cdef class Hash:
    cpdef unsigned long long value(self, bytes buf, Py_ssize_t start, Py_ssize_t end)


cdef class SignedHash(Hash):
    cdef int sign
