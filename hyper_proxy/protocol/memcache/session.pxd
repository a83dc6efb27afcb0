from hyper_proxy.common.gather cimport Gather
from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.protocol.memcache.command cimport Command
from hyper_proxy.protocol.memcache.fanout cimport MultiGet, Part
from hyper_proxy.protocol.memcache.framing cimport Framer
from hyper_proxy.protocol.memcache.questions cimport Questions
from hyper_proxy.protocol.observed cimport ODD, PLAIN, READ
from hyper_proxy.protocol.session cimport Session
from hyper_proxy.stats.access cimport Sight


cdef int RETRIEVE_TOUCHING
cdef int LOCAL


cdef class MemcacheSession(Session):
    cdef readonly Py_ssize_t sequence
    cdef readonly Framer framer
    cdef readonly Placement placement
    cdef readonly object treat
    cdef Py_ssize_t max_key
    cdef Py_ssize_t max_keys
    cdef Py_ssize_t max_line
    cdef Py_ssize_t swallow
    cdef Questions questions
    cdef Gather dropped
    cdef readonly bytes buf

    cdef bint take(self, bytes buf, Py_ssize_t start, Py_ssize_t end) except -1
    cdef void forward(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cdef void split(self, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cdef bint refuse(self) except -1
    cpdef send_unheard(self, Lane lane, object raw)
    cpdef answer(self, bytes reply)
    cpdef bytes key(self)
    cpdef Py_ssize_t shard(self)
    cpdef bytes misfit(self, Py_ssize_t shard)
