from libc.errno cimport errno

cdef extern from *:
    """
    #include <sys/socket.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    /* recv and send of the C library look, as soon as the process has a second thread, before and after each call
       whether this thread is to be cancelled. */
    #define SYSTEM_RECV(fd, buf, size, flags) syscall(SYS_recvfrom, fd, buf, size, flags, NULL, NULL)
    #define SYSTEM_SEND(fd, buf, size, flags) syscall(SYS_sendto, fd, buf, size, flags, NULL, 0)
    """
    ssize_t c_recv "SYSTEM_RECV"(int fd, void* buf, size_t size, int flags) nogil
    ssize_t c_send "SYSTEM_SEND"(int fd, const void* buf, size_t size, int flags) nogil
    int MSG_DONTWAIT
    int MSG_NOSIGNAL

cpdef bytes recv(int fd)
cpdef Py_ssize_t send(int fd, bytes data, Py_ssize_t start) except -1
