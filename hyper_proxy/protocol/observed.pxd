from hyper_proxy.common.clock cimport now
from hyper_proxy.common.express cimport Giver, Taker
from hyper_proxy.conn_pool.flights cimport Flights
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.stats.access cimport Scribe, Sight
from hyper_proxy.stats.watch cimport Watch
from hyper_proxy.tunnel.batch cimport Batch


cdef int ODD
cdef int PLAIN
cdef int READ


cdef class Observed(Taker):
    cdef readonly Giver client
    cdef readonly Batch batch
    cdef readonly list lanes
    cdef Py_ssize_t need
    cdef readonly Watch watch
    cdef readonly double began
    cdef readonly double walked
    cdef readonly bytes seen
    cdef readonly Py_ssize_t seen_from
    cdef readonly Py_ssize_t seen_to
    cdef bint large
    cdef list slots
    cdef bint failed
    cdef object draft
    cdef bint seeing
    cdef bytes label
    cdef long long label_epoch
    cdef Py_ssize_t reads
    cdef Py_ssize_t idempotents
    cdef Py_ssize_t writes
    cdef Py_ssize_t admins

    cdef observe(self, object client, Watch watch)
    cdef look(self, Py_ssize_t us, Py_ssize_t count, bytes out)
    cdef bint sample(self, Py_ssize_t index, object reply) except -1
    cdef bint see(self, Py_ssize_t us, Py_ssize_t count, bytes out) except -1
    cpdef record(self)
    cdef tell(self)
    cdef forget(self)
    cdef int spot(self, Py_ssize_t index, Sight sight) except -1
    cdef Py_ssize_t size(self, bytes reply) except -1
    cdef Py_ssize_t given(self, bytes buf) except -2
    cdef bint is_single(self, Py_ssize_t at) except -1
    cdef Py_ssize_t count(self) except -1
