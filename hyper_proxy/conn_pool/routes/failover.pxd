from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport Leg, RouteLane


cdef class FailoverLane(RouteLane):
    pass


cdef class FailoverLeg(Leg):
    cdef list lanes
