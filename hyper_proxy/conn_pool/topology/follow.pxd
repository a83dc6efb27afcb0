from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport Leg, RouteLane


cdef class FollowLane(RouteLane):
    cdef readonly object group
    cdef readonly Py_ssize_t index
    cdef bint reading
    cdef bint strict
    cdef Py_ssize_t turn
    cdef Lane choose(self, Py_ssize_t klass)


cdef class FollowLeg(Leg):
    cdef readonly FollowLane route
    cdef readonly Lane asked
    cdef public Py_ssize_t tries
    cdef public double began

    cpdef ask(self, Lane lane, bytes before)
