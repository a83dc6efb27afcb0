from hyper_proxy.common.buffers cimport chars, copy, new_bytearray, new_bytes, number_at, put_number
from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.tunnel.batch cimport Reducer


cdef class Part:
    cdef readonly Py_ssize_t shard
    cdef Py_ssize_t number
    cdef readonly Py_ssize_t keys
    cdef readonly object request
    cdef bytes reply
    cdef Py_ssize_t size
    cdef Py_ssize_t cursor


cdef class Split(Reducer):
    cdef readonly list parts
    cdef readonly Py_ssize_t keys
    cdef readonly Py_ssize_t longest
    cdef bytearray notes
    cdef readonly int words_per_key

    cdef Split fresh(self)
    cdef bint cut(self, bytes buf, Py_ssize_t args, Py_ssize_t argc, Placement placement) except -1
    cdef write_parts(self, bytes buf, Py_ssize_t args, Py_ssize_t verb_end)


cdef Py_ssize_t head_size(Py_ssize_t count) noexcept
cdef Py_ssize_t put_head(object out, Py_ssize_t count) noexcept
