from libc.errno cimport errno

from hyper_proxy.common.clock cimport now
from hyper_proxy.common.sockio cimport recv, send
from hyper_proxy.conn_pool.sql_answer cimport Answer

cdef extern from "sys/socket.h" nogil:
    ssize_t c_peek "recv"(int fd, void* buf, size_t size, int flags)

cdef double SLACK_S


cdef class Line:
    cdef object sock
    cdef int fd
    cdef readonly bint is_late
    cdef readonly Py_ssize_t bytes_in
    cdef readonly Py_ssize_t bytes_out
    cdef Answer answer
    cdef object failure
    cdef bint ended
    cdef readonly bint unasked
    cdef double deadline
    cdef object loop
    cdef object reader
    cdef object timer
    cdef object switch_in
    cdef object switch_out

    cpdef Answer ask(self, bytes data, double deadline)
    cdef _end(self)
    cpdef bint is_quiet(self) except -1
