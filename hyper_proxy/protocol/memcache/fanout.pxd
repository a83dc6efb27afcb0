from libc.string cimport memcmp

from hyper_proxy.common.buffers cimport chars, copy, finished, new_bytes
from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.tunnel.batch cimport Reducer


cdef Py_ssize_t END_BYTES
cdef Py_ssize_t ITEM_HEAD
cdef Py_ssize_t SHORT_LINE
cdef Py_ssize_t MOST_PARTS


cdef class Part:
    cdef readonly Py_ssize_t shard
    cdef Py_ssize_t index
    cdef readonly Py_ssize_t keys
    cdef readonly object request
    cdef Py_ssize_t size
    cdef Py_ssize_t cursor
    cdef Py_ssize_t end
    cdef readonly bytes reply


cdef class MultiGet(Reducer):
    cdef readonly list parts
    cdef readonly Py_ssize_t keys
    cdef Py_ssize_t lost
    cdef bytes failure
    cdef bytearray table
    cdef bytes buf
    cdef Py_ssize_t first
    cdef Py_ssize_t text_end

    cpdef bytes cut(self, bytes buf, Py_ssize_t head, Py_ssize_t first, Py_ssize_t text_end, Placement placement,
                    Py_ssize_t max_key, Py_ssize_t max_keys, bint short_lines, bint rewrite)
    cdef void write_parts(self, Py_ssize_t head)
    cdef void receive(self, list replies, object session)
    cdef void lose(self, Part part, bytes failure)
    cdef Py_ssize_t match(self, object out) except -2


cpdef Py_ssize_t item_end(bytes reply, Py_ssize_t i, bytes key, Py_ssize_t start, Py_ssize_t end) noexcept
