cdef class ReplyParser:
    cdef bytearray rest
    cdef Py_ssize_t need
    cdef Py_ssize_t position
    cdef Py_ssize_t open
    cdef bint dropping
    cdef Py_ssize_t swallow

    cpdef list feed(self, bytes data)
    cpdef drop_if_short(self)
    cdef list _resume(self, bytearray rest, bytes data)
    cdef Py_ssize_t scan(self, unsigned char* p, Py_ssize_t start, Py_ssize_t n) except -2
    cdef Py_ssize_t wait_for(self, Py_ssize_t need, Py_ssize_t position, Py_ssize_t open)
