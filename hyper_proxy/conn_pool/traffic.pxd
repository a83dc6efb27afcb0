from hyper_proxy.common.clock cimport now
from hyper_proxy.common.sockio cimport recv, send
from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.flights cimport Flights
from hyper_proxy.conn_pool.flusher cimport Flushed, Flusher
from hyper_proxy.conn_pool.hold cimport Hold
from hyper_proxy.conn_pool.patience cimport Patience
from hyper_proxy.conn_pool.replies cimport ReplyParser
from hyper_proxy.conn_pool.room cimport Room


cdef int CLOSED
cdef int CONNECTING
cdef int READY
cdef int ENDING
cdef Py_ssize_t COMPACT_AT


cdef class Traffic(Flushed):
    cdef readonly object node
    cdef readonly int state
    cdef readonly Py_ssize_t pending_bytes
    cdef readonly Py_ssize_t sent
    cdef readonly Py_ssize_t answered
    cdef readonly Py_ssize_t bytes_in
    cdef readonly Py_ssize_t bytes_out
    cdef readonly bint private
    cdef readonly Py_ssize_t max_pending_bytes
    cdef Patience patience
    cdef double queued_at
    cdef bint fresh
    cdef ReplyParser parser
    cdef list pending
    cdef list queue
    cdef list waiting
    cdef Py_ssize_t head
    cdef readonly Flights flights
    cdef bytes unsent
    cdef Py_ssize_t unsent_from
    cdef object loop
    cdef object sock
    cdef int fd
    cdef object reader
    cdef object writer
    cdef object timer
    cdef bint scheduled
    cdef Room room
    cdef Flusher flusher
    cdef Hold hold

    cpdef submit(self, object raw, Py_ssize_t klass, Gather gather, Py_ssize_t position)
    cpdef bint is_full(self, Py_ssize_t klass)
    cdef _depart(self, bytes data, Py_ssize_t count, double at)
    cdef _flush_all(self, double at)
    cdef _send(self, bytes data, Py_ssize_t start)
    cdef deliver(self, list replies, double at)
