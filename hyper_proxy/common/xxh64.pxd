cpdef unsigned long long xxh64(bytes buf, Py_ssize_t start, Py_ssize_t end, unsigned long long seed) noexcept
