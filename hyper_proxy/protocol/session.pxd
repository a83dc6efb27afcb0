from hyper_proxy.common.clock cimport now
from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.stats.instance cimport InstanceStats


cdef class Reducer:
    cdef public Py_ssize_t count
    cpdef bytes reduce(self, list replies, Session session)


cdef class Session:
    cdef readonly object front
    cdef readonly object client
    cdef readonly object snapshot
    cdef readonly Gather gather
    cdef public bint closing
    cdef readonly Py_ssize_t depth
    cdef Py_ssize_t max_depth
    cdef Py_ssize_t need
    cdef bytearray rest
    cdef list plan
    cdef object write
    cdef InstanceStats stats
    cdef double began
    cdef Py_ssize_t reads
    cdef Py_ssize_t idempotents
    cdef Py_ssize_t writes
    cdef Py_ssize_t admins

    cpdef feed(self, bytes data)
    cpdef finish(self)
    cpdef send(self, Lane lane, object raw)
    cpdef ask(self, Lane lane, object raw)
    cpdef drop(self)
    cdef Py_ssize_t walk(self, bytes buf, Py_ssize_t start) except -1
    cdef bint is_whole(self, bytearray rest) except -1
    cpdef reduce_later(self, Reducer reducer)
    cpdef tally(self, int klass)
    cdef bytes encode(self)
    cdef measure(self)
