from hyper_proxy.common.clock cimport now
from hyper_proxy.common.present cimport Present
from hyper_proxy.protocol.observed cimport Observed
from hyper_proxy.stats.instance cimport InstanceStats
from hyper_proxy.tunnel.batch cimport Batch


cdef Py_ssize_t FIRST_DEPTH
cdef Py_ssize_t BATCH_BYTES
cdef Py_ssize_t USUAL_BATCH_BYTES
cdef Py_ssize_t LARGE_BYTES
cdef Py_ssize_t SEEN_BYTES
cdef double TURN_S


cdef class Session(Observed):
    cdef readonly Present front
    cdef readonly object snapshot
    cdef bytes later
    cdef public bint closing
    cdef readonly Py_ssize_t depth
    cdef Py_ssize_t max_depth
    cdef Py_ssize_t max_request
    cdef bytearray rest
    cdef InstanceStats stats
    cdef double turn

    cpdef feed(self, bytes data)
    cpdef finish(self)
    cdef bytes answers(self)
    cdef note_rest(self)
    cdef check_answers(self)
    cdef Py_ssize_t walk(self, bytes buf, Py_ssize_t start) except -1
    cdef bint is_whole(self, bytearray rest) except -1
    cpdef tally(self, int klass)
    cdef measure(self, Py_ssize_t count, bytes out)
