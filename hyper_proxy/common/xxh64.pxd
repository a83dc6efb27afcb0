cdef unsigned long long rotate(unsigned long long x, int k) noexcept
cdef unsigned long long word(unsigned char* p, Py_ssize_t i, Py_ssize_t size) noexcept
cpdef unsigned long long xxh64(bytes buf, Py_ssize_t start, Py_ssize_t end, unsigned long long seed) noexcept
