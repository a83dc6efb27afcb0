from hyper_proxy.hashing.hash cimport Hash
from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.hashing.routes.join cimport Sum


cdef class ByTime(Sum):
    cdef double begins
    cdef double seconds
    cdef Hash order
    cdef double moved
    cdef Py_ssize_t left
