from cpython.pythread cimport PyThread_start_new_thread
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from posix.uio cimport iovec, writev
from posix.unistd cimport close, read, write

cdef extern from *:
    """
    #include <unistd.h>
    #include <sys/syscall.h>

    /* The C library of the machine that compiles may be older than the system that runs. */
    #ifndef SYS_close_range
    #define SYS_close_range 436
    #endif
    #ifndef SYS_pidfd_getfd
    #define SYS_pidfd_getfd 438
    #endif
    """
    long SYS_close_range
    long SYS_pidfd_getfd
    long syscall(long number, ...) nogil

cdef enum:
    CLOSE_RANGE_UNSHARE = 2


cdef struct Job:
    bint begun
    bint apart  # has the thread descriptors of its own?
    int wake  # an eventfd: 1: there is something to write; more: the thread is to end
    int done  # an eventfd: it is written
    int process  # a pidfd of this process, or -1. They were opened in this order, so each number is above the last one
    int fd
    int count
    Py_ssize_t written
    int error
    iovec parts[512]  # MOST_PARTS


cdef inline void close_all(Job* job) noexcept nogil:
    close(job.wake)
    close(job.done)
    if job.process >= 0:
        close(job.process)


cdef inline long close_range(unsigned int first, unsigned int last, int flags) noexcept nogil:
    return syscall(SYS_close_range, first, last, flags)


cdef inline void go_apart(Job* job) noexcept nogil:
    """Have no descriptors in common with the event loop: to use one that threads share, the system counts it up and
    down again, at each call. Where the system is too old, or a sandbox does not allow it, they stay common.
    """
    cdef int probe = syscall(SYS_pidfd_getfd, job.process, job.wake, 0)
    if probe < 0:
        return
    close(probe)
    if close_range(job.process + 1, ~<unsigned int> 0, CLOSE_RANGE_UNSHARE) < 0:
        return
    job.apart = True
    close_range(job.done + 1, job.process - 1, 0)
    close_range(job.wake + 1, job.done - 1, 0)
    close_range(0, job.wake - 1, 0)


cdef inline void write_job(Job* job) noexcept nogil:
    cdef int fd = syscall(SYS_pidfd_getfd, job.process, job.fd, 0) if job.apart else job.fd
    job.written = writev(fd, job.parts, job.count) if fd >= 0 else -1
    job.error = errno
    if job.apart:
        close(fd)


cdef inline void serve(void* given) noexcept nogil:
    cdef Job* job = <Job*> given
    cdef uint64_t number = 0
    go_apart(job)
    while True:
        if read(job.wake, &number, 8) != 8:
            if errno == EINTR:
                continue
            break
        if number != 1:
            break
        write_job(job)
        write(job.done, &number, 8)
    close_all(job)
    free(job)


cdef class DiskThread:
    cdef Job* job
    cdef object watcher

    cdef prepare(self)
    cdef begin(self)
