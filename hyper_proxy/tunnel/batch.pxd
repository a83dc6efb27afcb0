from hyper_proxy.common.clock cimport now
from hyper_proxy.common.express cimport Taker
from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane


cdef class Reducer:
    cdef public Py_ssize_t count
    cdef public Py_ssize_t at
    cpdef bytes reduce(self, list replies, object session)


cdef class Batch(Gather):
    cdef readonly bint express
    cdef readonly bint crowded
    cdef Taker taker
    cdef list plan
    cdef public list waits

    cpdef begin_express(self)
    cpdef bint end_express(self, Taker taker)
    cpdef send(self, Lane lane, object raw, Py_ssize_t klass)
    cpdef room(self, Lane lane, Py_ssize_t klass)
    cpdef bytes ask(self, Lane lane, object raw, Py_ssize_t klass)
    cpdef reduce_later(self, Reducer reducer)
    cpdef bytes collect(self, object session)
    cdef bytes _reduce(self, object session)
