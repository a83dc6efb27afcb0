from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport JointLeg, RouteLane


cdef class QuorumLane(RouteLane):
    cdef readonly Py_ssize_t need
    cdef readonly bint patient


cdef class QuorumLeg(JointLeg):
    cdef Py_ssize_t open_count
    cdef Py_ssize_t good
    cdef bint over
