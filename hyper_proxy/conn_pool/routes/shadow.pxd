from hyper_proxy.common.clock cimport now
from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport JointLeg, RouteLane


cdef class ShadowLane(RouteLane):
    cdef double fraction
    cdef bint compare
    cdef double logged_at


cdef class ShadowLeg(JointLeg):
    pass
