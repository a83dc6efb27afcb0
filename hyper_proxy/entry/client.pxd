from hyper_proxy.common.clock cimport now
from hyper_proxy.common.express cimport Giver, Taker
from hyper_proxy.common.sockio cimport recv, send


cdef class Client(Giver):
    cdef readonly object sock
    cdef readonly object address
    cdef readonly object local_address
    cdef readonly int fd
    cdef readonly Py_ssize_t bytes_in
    cdef readonly Py_ssize_t bytes_out
    cdef readonly double since
    cdef bint reading
    cdef bint arrived
    cdef public object on_hang_up
    cdef public object on_stall
    cdef object switch_in
    cdef object switch_out
    cdef object watcher
    cdef object callback
    cdef public double write_s
    cdef public Taker express
    cdef bint busy
    cdef public Py_ssize_t kept
    cdef public Py_ssize_t lacking
    cdef bint held
    cdef bint leaving
    cdef public bint dismissed
    cdef bint closed
    cdef int writers
    cdef bytes data
    cdef bytes unsent

    cdef bint _offer(self, bytes data) except -1
    cdef bytes _receive(self)
    cdef _write_unsent(self)
    cdef _wake(self, bytes data)
    cpdef _write(self, bytes data)

    cpdef bytes read(self)
    cpdef write(self, bytes data)
