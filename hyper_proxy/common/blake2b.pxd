cpdef unsigned long long digest64(bytes buf, Py_ssize_t start, Py_ssize_t end) except? -1
