from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.tunnel.batch cimport Batch


cdef class Descent(Batch):
    cdef public bytes nil
    cdef object complete_below
    cdef dict reads
    cdef object who

    cdef bint is_whole(self, bytes reply) except -1
    cpdef read(self, Lane lane, object raw, Py_ssize_t klass, Py_ssize_t shard)
