cdef class Present:
    cdef public object snapshot
