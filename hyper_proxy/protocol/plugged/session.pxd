from hyper_proxy.protocol.session cimport Session


cdef class PluggedSession(Session):
    cdef readonly object protocol
    cdef readonly object owner
    cdef readonly object storage
    cdef object limits
