from hyper_proxy.common.clock cimport now
from hyper_proxy.stats.instance cimport InstanceStats
from hyper_proxy.stats.watch cimport Watch
from hyper_proxy.tunnel.batch cimport Batch


cdef Py_ssize_t FIRST_DEPTH
cdef Py_ssize_t BATCH_BYTES
cdef Py_ssize_t USUAL_BATCH_BYTES
cdef Py_ssize_t LARGE_BYTES
cdef Py_ssize_t SEEN_BYTES
cdef double TURN_S


cdef class Session:
    cdef readonly object front
    cdef readonly object client
    cdef readonly object snapshot
    cdef readonly Batch batch
    cdef bytes later
    cdef object answer_callback
    cdef public bint closing
    cdef readonly Py_ssize_t depth
    cdef Py_ssize_t max_depth
    cdef Py_ssize_t max_request
    cdef Py_ssize_t need
    cdef bytearray rest
    cdef InstanceStats stats
    cdef readonly Watch watch
    cdef readonly double began
    cdef readonly double walked
    cdef readonly bytes seen
    cdef readonly Py_ssize_t seen_from
    cdef readonly Py_ssize_t seen_to
    cdef bint large
    cdef list slots
    cdef object draft
    cdef double turn
    cdef Py_ssize_t reads
    cdef Py_ssize_t idempotents
    cdef Py_ssize_t writes
    cdef Py_ssize_t admins

    cpdef feed(self, bytes data)
    cpdef finish(self)
    cdef bytes answers(self)
    cdef note_rest(self)
    cpdef bint take_express(self, bytes data) except -1
    cdef check_answers(self)
    cdef Py_ssize_t walk(self, bytes buf, Py_ssize_t start) except -1
    cdef bint is_whole(self, bytearray rest) except -1
    cpdef tally(self, int klass)
    cdef measure(self, Py_ssize_t count, bytes out)
    cdef look(self, Py_ssize_t us, Py_ssize_t count, bytes out)
    cdef bint sample(self, Py_ssize_t index, object reply) except -1
