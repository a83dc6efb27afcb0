from cpython.bytearray cimport PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy


cdef inline object new_bytes(Py_ssize_t size):
    return PyBytes_FromStringAndSize(NULL, size)


cdef inline unsigned char* chars(object out) noexcept:
    return <unsigned char*> PyBytes_AS_STRING(out)


cdef inline bytes finished(object out):
    return <bytes> out


cdef inline bytearray new_bytearray(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


cdef inline Py_ssize_t copy(object out, Py_ssize_t at, bytes data, Py_ssize_t start, Py_ssize_t end) noexcept:
    memcpy(PyBytes_AS_STRING(out) + at, PyBytes_AS_STRING(data) + start, end - start)
    return at + end - start


cdef inline void put_number(unsigned char* numbers, Py_ssize_t index, unsigned long long number) noexcept:
    memcpy(numbers + 8 * index, &number, 8)


cdef inline unsigned long long number_at(unsigned char* numbers, Py_ssize_t index) noexcept:
    cdef unsigned long long number = 0
    memcpy(&number, numbers + 8 * index, 8)
    return number
