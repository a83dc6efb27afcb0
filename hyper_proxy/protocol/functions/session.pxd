from hyper_proxy.protocol.session cimport LARGE_BYTES, Session


cdef class FunctionSession(Session):
    cdef readonly object protocol
    cdef readonly object owner
    cdef readonly object caller
    cdef readonly object storage
    cdef object limits
    cdef readonly list requests
    cdef object described
    cdef readonly list faults
    cdef Py_ssize_t taken
    cdef Py_ssize_t lacks

    cdef Py_ssize_t keep(self, object partly, bytes buf, Py_ssize_t start) except -1
    cdef Py_ssize_t let_go(self, object fault, Py_ssize_t end) except -1
