from hyper_proxy.common.clock cimport now
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.tunnel.batch cimport Batch

cdef double JOIN_S
cdef int ARRAY, MINUS, NIL, STRING

cdef bint is_sign(bytes reply, Py_ssize_t start) except -1


cdef class Crowd:
    cdef double began
    cdef list members


cdef class Descent(Batch):
    cdef bytes nil
    cdef bytes nothing
    cdef bint misses
    cdef dict crowds
    cdef double deadline_s
    cdef object counts
    cdef object complete_below
    cdef object who

    cdef bint is_whole(self, bytes reply) except -1
    cdef join(self, Py_ssize_t position, object raw)
    cpdef read(self, Lane lane, object raw, Py_ssize_t klass)
