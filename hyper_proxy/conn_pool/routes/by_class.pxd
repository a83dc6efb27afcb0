from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport RouteLane


cdef class ClassLane(RouteLane):
    cdef Py_ssize_t read_at
    cdef Py_ssize_t write_at
    cdef Lane choose(self, Py_ssize_t klass)
