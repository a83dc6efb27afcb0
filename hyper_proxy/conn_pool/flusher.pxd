from hyper_proxy.common.load cimport Load


cdef class Flushed:
    cdef flush(self)


cdef class Flusher:
    cdef list due
    cdef list spare
    cdef object loop
    cdef object callback

    cdef add(self, Flushed what)
