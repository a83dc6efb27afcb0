cdef class Taker:
    cdef bint take_express(self, bytes data) except -1
    cdef answer_express(self)


cdef class Giver:
    cdef readonly bint stalled
    cdef object turn

    cpdef answer_express(self, bytes out, bytes later)
