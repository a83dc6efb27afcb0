from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport JointLeg, Leg, RouteLane


cdef class WarmUpLane(RouteLane):
    pass


cdef class WarmUpLeg(Leg):
    cdef readonly WarmUpLane route


cdef class RemovalLeg(JointLeg):
    pass
