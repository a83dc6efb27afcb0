from hyper_proxy.conn_pool.replies cimport ReplyParser


cdef Py_ssize_t MAX_BULK_BYTES
cdef Py_ssize_t MAX_LINE_BYTES
cdef Py_ssize_t MAX_ELEMENTS
cdef Py_ssize_t MAX_DIGITS


cdef class RespParser(ReplyParser):
    pass
