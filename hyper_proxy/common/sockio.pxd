from libc.errno cimport errno

cdef extern from "sys/socket.h" nogil:
    ssize_t c_recv "recv"(int fd, void* buf, size_t size, int flags)
    ssize_t c_send "send"(int fd, const void* buf, size_t size, int flags)
    int MSG_DONTWAIT
    int MSG_NOSIGNAL

cpdef bytes recv(int fd)
cpdef Py_ssize_t send(int fd, bytes data, Py_ssize_t start) except -1
