cdef Py_ssize_t SLOW_BYTES
cdef Py_ssize_t LARGE_BYTES


cdef class Patience:
    cdef public double read_s
    cdef double heard_at
    cdef double head_at
    cdef readonly Py_ssize_t heard
    cdef public bint large
    cdef Py_ssize_t taken

    cpdef begin(self, double at)
    cpdef hear(self, Py_ssize_t count, double at)
    cpdef advance(self, double at)
    cpdef say(self, Py_ssize_t count, Py_ssize_t bytes_out, int fd)
    cpdef look(self, Py_ssize_t bytes_out, int fd, double at)
    cpdef double left(self, double asked_at, double at)
