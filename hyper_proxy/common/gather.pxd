cdef class Gather:
    cdef public list slots
    cdef readonly Py_ssize_t left
    cdef readonly bint failed
    cdef object greenlet
    cdef object switch_to_hub

    cpdef Py_ssize_t expect(self)
    cpdef void add(self, object reply)
    cpdef deliver(self, Py_ssize_t position, object reply)
    cpdef fail(self, Py_ssize_t position, object error)
    cpdef wait(self)
    cpdef reset(self)
