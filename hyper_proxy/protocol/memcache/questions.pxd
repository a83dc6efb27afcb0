from hyper_proxy.protocol.memcache.command cimport Command
from hyper_proxy.protocol.memcache.fanout cimport item_end


cdef Py_ssize_t END_BYTES
cdef Py_ssize_t FIELDS


cdef class Questions:
    cdef Py_ssize_t slot
    cdef Command command
    cdef Py_ssize_t key_start
    cdef Py_ssize_t place
    cdef list more

    cdef bint note(self, Py_ssize_t slot, Command command, Py_ssize_t key_start, Py_ssize_t key_size,
                   Py_ssize_t shard) except -1
    cdef bint check(self, list slots, bytes buf, object session) except -1
    cdef bint hold_against(self, list slots, bytes buf, object session, Py_ssize_t slot, Command command,
                           Py_ssize_t key_start, Py_ssize_t place) except -1
