cdef class Framer:
    cdef public bint before_auth
    cdef readonly Py_ssize_t need
    cdef readonly Py_ssize_t argc
    cdef readonly Py_ssize_t name_start
    cdef readonly Py_ssize_t name_end
    cdef readonly Py_ssize_t key_start
    cdef readonly Py_ssize_t key_end
    cdef readonly Py_ssize_t args
    cdef readonly bint inline
    cdef Py_ssize_t max_arguments
    cdef Py_ssize_t max_bulk
    cdef Py_ssize_t max_line
    cdef Py_ssize_t length
    cdef Py_ssize_t position
    cdef Py_ssize_t open

    cpdef Py_ssize_t scan(self, object buf, Py_ssize_t start) except -2
    cdef Py_ssize_t scan_line(self, object buf, Py_ssize_t start) except -2
    cdef Py_ssize_t wait_for(self, Py_ssize_t need, Py_ssize_t position, Py_ssize_t open)


cpdef list words(bytes buf, Py_ssize_t args, Py_ssize_t end)
cpdef Py_ssize_t given_bytes(bytes buf, Py_ssize_t args, Py_ssize_t count) noexcept
