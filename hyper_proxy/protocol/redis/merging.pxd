from hyper_proxy.common.buffers cimport copy, finished, new_bytes, number_at
from hyper_proxy.protocol.redis.fanout cimport Part, Split, head_size, put_head


cdef class ByPosition(Split):
    cdef bytes merge(self, object session, Py_ssize_t size)


cdef class Sum(Split):
    pass


cdef class AllOk(Split):
    pass
