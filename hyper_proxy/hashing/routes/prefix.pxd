from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.hashing.routes.join cimport Sum


cdef class ByPrefix(Sum):
    cdef dict by_prefix
    cdef list sizes
