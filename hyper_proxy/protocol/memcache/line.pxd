from hyper_proxy.protocol.memcache.command cimport Command


cdef int RETRIEVE_TOUCHING
cdef int STORE
cdef int STORE_CAS
cdef int NUMBER
cdef int EXPTIME
cdef int DELETE
cdef int META
cdef int META_STORE
cdef int META_DEBUG
cdef int LOCAL
cdef Py_ssize_t MAX_SIZE
cdef Py_ssize_t MOST_META_WORDS
cdef Py_ssize_t PLAIN_DIGITS
cdef Py_ssize_t MAX_DIGITS


cdef class Line:
    cdef readonly Command command
    cdef readonly bytes error
    cdef readonly bint noreply
    cdef readonly Py_ssize_t args
    cdef readonly Py_ssize_t key_start
    cdef readonly Py_ssize_t key_end
    cdef readonly bint several
    cdef readonly Py_ssize_t cut
    cdef readonly Py_ssize_t text_end
    cdef readonly int quiet
    cdef readonly bint encoded
    cdef bint odd
    cdef Py_ssize_t quiet_start
    cdef Py_ssize_t quiet_end
    cdef readonly Py_ssize_t max_key
    cdef Py_ssize_t words
    cdef Py_ssize_t word_start
    cdef Py_ssize_t word_end

    cdef bint next_word(self, bytes buf, Py_ssize_t i) noexcept
    cdef bint take_key(self, bytes buf) noexcept
    cdef void count(self, bytes buf) noexcept
    cdef Py_ssize_t number(self, bytes buf, object read) except? -1
    cdef bint read_line(self, bytes buf, int form) except -1
    cdef void read_retrieval(self, bytes buf, bint touching)
    cdef void read_number(self, bytes buf, object read, bytes refusal)
    cdef void read_delete(self, bytes buf)
    cdef void read_meta(self, bytes buf)
    cdef void read_flags(self, bytes buf) noexcept
    cdef Py_ssize_t read_store(self, bytes buf) except -2
    cdef Py_ssize_t read_meta_store(self, bytes buf) except -2
