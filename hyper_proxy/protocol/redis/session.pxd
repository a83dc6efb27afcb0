from hyper_proxy.conn_pool.lane cimport Lane
from hyper_proxy.hashing.placement cimport Placement
from hyper_proxy.protocol.redis.command cimport Command
from hyper_proxy.protocol.redis.fanout cimport Part, Split
from hyper_proxy.protocol.redis.framing cimport Framer
from hyper_proxy.protocol.observed cimport ODD, PLAIN, READ
from hyper_proxy.protocol.session cimport Session
from hyper_proxy.stats.access cimport Sight
from hyper_proxy.tunnel.descent cimport Descent


cdef int SINGLE
cdef int SPLIT


cdef class RedisSession(Session):
    cdef readonly long long id
    cdef public bytes name
    cdef public int resp
    cdef public int db
    cdef public str user
    cdef public bytes lib_name
    cdef public bytes lib_ver
    cdef readonly double created
    cdef public bint authenticated
    cdef public object transaction
    cdef public object subscriber
    cdef readonly long long sequence
    cdef readonly object storage
    cdef public int replies
    cdef public bint special
    cdef bint leveled
    cdef readonly Placement placement
    cdef Framer framer
    cdef readonly Py_ssize_t max_key
    cdef bytes last_name
    cdef Command last_command

    cdef Command lookup(self, bytes buf)
    cdef forward(self, Command command, bytes buf, Py_ssize_t start, Py_ssize_t end)
    cdef send_part(self, Command command, object raw, Py_ssize_t shard)
    cdef split(self, Command command, bytes buf, Py_ssize_t start, Py_ssize_t end)
