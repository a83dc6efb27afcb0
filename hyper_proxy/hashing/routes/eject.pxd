from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.hashing.routes.join cimport Product


cdef class Ejecting(Product):
    cdef object level
    cdef Placement home
    cdef dict others
