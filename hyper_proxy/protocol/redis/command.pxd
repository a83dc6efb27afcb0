cdef class Command:
    cdef readonly bytes name
    cdef readonly int arity
    cdef readonly int first
    cdef readonly int last
    cdef readonly int step
    cdef readonly object find_keys
    cdef readonly object blocks
    cdef readonly object outside
    cdef readonly frozenset flags
    cdef readonly int klass
    cdef readonly int treatment
    cdef readonly str reduce
    cdef readonly bint dangerous
    cdef readonly str why
    cdef readonly dict subcommands

    cpdef bint accepts(self, Py_ssize_t argc) noexcept
