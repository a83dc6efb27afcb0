from hyper_proxy.hashing.hash cimport Hash


cdef class Placement:
    cdef readonly Py_ssize_t shards
    cdef readonly Hash hash
    cdef int opening
    cdef int closing
    cdef bint empty_tag
    cpdef Py_ssize_t locate(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cpdef Py_ssize_t choose(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cpdef Py_ssize_t shard_of(self, unsigned long long value)
    cdef Py_ssize_t tag_start(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cdef Py_ssize_t tag_end(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
