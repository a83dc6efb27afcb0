cdef class Room:
    cdef readonly list waiting
