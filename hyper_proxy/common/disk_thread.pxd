from cpython.pythread cimport PyThread_start_new_thread
from libc.errno cimport EINTR, errno
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from posix.uio cimport iovec, writev
from posix.unistd cimport close, read, write


cdef struct Job:
    bint begun
    int wake  # an eventfd: 1: there is something to write; more: the thread is to end
    int done  # an eventfd: it is written
    int fd
    int count
    Py_ssize_t written
    int error
    iovec parts[512]  # MOST_PARTS


cdef inline void release(Job* job) noexcept nogil:
    close(job.wake)
    close(job.done)
    free(job)


cdef inline void serve(void* given) noexcept nogil:
    cdef Job* job = <Job*> given
    cdef uint64_t number = 0
    while True:
        if read(job.wake, &number, 8) != 8:
            if errno == EINTR:
                continue
            break
        if number != 1:
            break
        job.written = writev(job.fd, job.parts, job.count)
        job.error = errno
        write(job.done, &number, 8)
    release(job)


cdef class DiskThread:
    cdef Job* job
    cdef object watcher

    cdef prepare(self)
    cdef begin(self)
