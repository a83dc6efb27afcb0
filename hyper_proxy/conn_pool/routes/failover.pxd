from hyper_proxy.common.clock cimport now
from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport Leg, RouteLane


cdef class FailoverLane(RouteLane):
    cdef Py_ssize_t rate
    cdef Py_ssize_t left
    cdef double since
    cdef bint may_hand_on(self) except -1


cdef class FailoverLeg(Leg):
    cdef FailoverLane route
