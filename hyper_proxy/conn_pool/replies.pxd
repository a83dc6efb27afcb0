cdef class ReplyParser:
    cdef bytearray rest
    cdef Py_ssize_t need
    cdef Py_ssize_t position
    cdef Py_ssize_t open

    cpdef list feed(self, bytes data)
    cdef list _resume(self, bytearray rest, bytes data)
    cdef Py_ssize_t scan(self, unsigned char* p, Py_ssize_t start, Py_ssize_t n) except -2
    cdef Py_ssize_t wait_for(self, Py_ssize_t need, Py_ssize_t position, Py_ssize_t open)
