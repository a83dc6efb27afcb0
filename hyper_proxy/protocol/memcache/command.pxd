cdef class Command:
    cdef readonly bytes name
    cdef readonly int form
    cdef readonly int least
    cdef readonly int most
    cdef readonly int klass
    cdef readonly tuple answers
    cdef readonly tuple hides
    cdef readonly Command quiet
    cdef readonly str why
    cdef readonly bint dangerous
