from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.tunnel.batch cimport Batch


cdef class Descent(Batch):
    cdef object lacks
    cdef object complete_below
    cdef dict reads
    cdef object who

    cpdef read(self, Lane lane, object raw, Py_ssize_t klass, Py_ssize_t shard)
