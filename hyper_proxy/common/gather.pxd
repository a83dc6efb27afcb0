cdef class Gather:
    cdef public list slots
    cdef readonly Py_ssize_t left
    cdef readonly bint failed
    cdef bint waiting
    cdef object hub
    cdef object switch_in
    cdef object switch_out

    cpdef Py_ssize_t expect(self)
    cpdef add(self, bytes reply)
    cpdef deliver(self, Py_ssize_t position, object reply)
    cpdef fail(self, Py_ssize_t position, object error)
    cpdef wait(self)
    cdef complete(self)
    cdef wake(self)
    cpdef reset(self)
