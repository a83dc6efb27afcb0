from libc.string cimport memchr

from hyper_proxy.conn_pool.replies cimport ReplyParser


cdef Py_ssize_t MAX_VALUE_BYTES
cdef Py_ssize_t MAX_LINE_BYTES
cdef Py_ssize_t VALUES
cdef Py_ssize_t LINES


cdef class MemcacheParser(ReplyParser):
    pass
