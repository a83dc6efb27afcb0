cdef class Answer:
    cdef readonly list rows
    cdef readonly Py_ssize_t affected
    cdef readonly list definitions
    cdef readonly bytes failure
    cdef int state
    cdef Py_ssize_t columns
    cdef bytes rest
    cdef list parts
    cdef Py_ssize_t at

    cpdef bint feed(self, bytes data) except -1
    cdef int take(self, bytes buf, Py_ssize_t start, Py_ssize_t end) except -1
    cdef int begin(self, bytes buf, Py_ssize_t start, Py_ssize_t end) except -1
    cdef int row(self, bytes buf, Py_ssize_t start, Py_ssize_t end) except -1
    cdef Py_ssize_t number(self, bytes buf, Py_ssize_t end) except -1
