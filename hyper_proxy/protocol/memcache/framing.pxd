from libc.string cimport memchr

from hyper_proxy.protocol.memcache.command cimport Command
from hyper_proxy.protocol.memcache.line cimport LOCAL, META_DEBUG, META_STORE, RETRIEVE_TOUCHING, STORE, STORE_CAS, Line


cdef Py_ssize_t LONG_LINE


cdef class Framer(Line):
    cdef readonly Py_ssize_t need
    cdef readonly Py_ssize_t line_end
    cdef readonly Py_ssize_t swallow
    cdef readonly bint stale
    cdef readonly bint long
    cdef bint whole
    cdef Py_ssize_t max_value
    cdef Py_ssize_t max_line
    cdef Py_ssize_t position
    cdef bytes last_name
    cdef Command last_command

    cpdef Py_ssize_t scan(self, bytes buf, Py_ssize_t start) except -2
    cpdef bytes request(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cdef Command lookup(self, bytes buf)
    cdef Py_ssize_t read_block(self, bytes buf, Py_ssize_t start, Py_ssize_t size) except -2
