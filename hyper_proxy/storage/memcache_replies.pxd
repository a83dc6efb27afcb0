from hyper_proxy.conn_pool.replies cimport ReplyParser


cdef class MemcacheParser(ReplyParser):
    pass
