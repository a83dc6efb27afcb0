cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int CLOCK_PROCESS_CPUTIME_ID
    int clock_gettime(int clock, timespec* at)

cpdef double now()
cpdef double cpu()
