from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane


cdef class RouteLane(Lane):
    cdef readonly list lanes
    cdef readonly object setting


cdef class Leg(Gather):
    cdef readonly object raw
    cdef readonly Py_ssize_t klass
    cdef readonly Gather gather
    cdef readonly Py_ssize_t position
    cpdef answer(self, bytes reply)
    cpdef give_up(self, object error)


cdef class JointLeg(Leg):
    cdef readonly RouteLane route
    cdef readonly list replies
