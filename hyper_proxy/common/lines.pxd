from cpython.bytearray cimport PyByteArray_FromStringAndSize
from libc.string cimport memcpy


cdef Py_ssize_t BLOCK


cdef class Author:
    cdef finish(self)


cdef class Lines:
    cdef readonly Py_ssize_t limit
    cdef object alarm
    cdef public Py_ssize_t alarm_at
    cdef readonly Py_ssize_t waiting
    cdef Py_ssize_t leaving
    cdef readonly long long lost
    cdef long long untold
    cdef list authors
    cdef list full
    cdef list spare
    cdef readonly bytearray block
    cdef Py_ssize_t used

    cpdef put(self, bytes line)
    cpdef Py_ssize_t reserve(self, Py_ssize_t size) except -2
    cpdef commit(self, Py_ssize_t size)
    cdef promise(self, Author author)
    cpdef finish(self)
    cdef wait_for_more(self, Py_ssize_t size)
    cdef end_block(self)


cdef class Outlet:
    cdef public long long epoch
    cdef public Lines lines
    cdef public bint mute
    cdef public object form
    cdef public dict common
