from libc.string cimport memcpy

from hyper_proxy.common.clock cimport now
from hyper_proxy.common.lines cimport Author, Lines, Outlet
from hyper_proxy.common.xxh64 cimport xxh64


cdef bytes NUMBERS
cdef bytes PAIRS
cdef unsigned char* _numbers
cdef unsigned char* _pairs


cdef class Sight:
    cdef bytes command
    cdef bytes client
    cdef bytes key
    cdef unsigned long long digest
    cdef Py_ssize_t keys
    cdef Py_ssize_t key_start
    cdef Py_ssize_t key_end
    cdef readonly Py_ssize_t requests
    cdef Py_ssize_t bytes_in
    cdef readonly Py_ssize_t bytes_out
    cdef bytes node
    cdef readonly bint failed
    cdef double began
    cdef double walked
    cdef double queue_s
    cdef double connect_s
    cdef double storage_s
    cdef readonly double ended
    cdef double written


cdef class Scribe(Author):
    cdef readonly str instance
    cdef Outlet outlet
    cdef list sights
    cdef readonly Sight sight
    cdef Py_ssize_t noted
    cdef readonly long long epoch
    cdef public bint show_keys
    cdef bint quoted
    cdef bytes names
    cdef bytes sizes
    cdef bytes before
    cdef bytes head
    cdef bytes tail
    cdef bytes failed_tail
    cdef Py_ssize_t fixed
    cdef readonly bytes nobody
    cdef bytearray stamp
    cdef Py_ssize_t ms_at
    cdef double stamp_end
    cdef double second_at
    cdef double second_end

    cdef bint ready(self) except -1
    cdef write(self, bytes client, bytes buf, double written)
    cdef finish(self)
    cdef write_line(self, Sight sight)
    cdef adopt(self)
    cdef turn_stamp(self, double at)
