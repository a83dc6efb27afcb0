cdef extern from "sys/socket.h" nogil:
    ssize_t c_recv "recv"(int fd, void* buf, size_t size, int flags)
    ssize_t c_send "send"(int fd, const void* buf, size_t size, int flags)

cpdef Py_ssize_t receive(int fd, bytearray buf)
cpdef Py_ssize_t transmit(int fd, bytes request)
