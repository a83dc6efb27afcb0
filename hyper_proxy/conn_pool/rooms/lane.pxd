from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.conn_pool.routes.route cimport Leg


cdef class RoomLane(Lane):
    cdef readonly list lanes
    cdef readonly object pair
    cdef readonly object is_error
    cdef object words
    cdef Lane aim(self)


cdef class RoomLeg(Leg):
    cdef readonly RoomLane route
    cdef bint again
    cpdef resend(self)


cdef class MarkLane(RoomLane):
    pass


cdef class MarkLeg(RoomLeg):
    cdef Py_ssize_t open
    cdef list outcomes
    cdef send(self)
    cdef note(self, Py_ssize_t side, object outcome)
    cdef finish(self)
