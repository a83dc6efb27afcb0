from hyper_proxy.common.clock cimport now
from hyper_proxy.conn_pool.flights cimport Flights
from hyper_proxy.conn_pool.traffic cimport CLOSED, CONNECTING, ENDING, READY, Traffic


cdef class Lane(Traffic):
    cdef readonly object greeting
    cdef readonly bint patient
    cdef readonly object dead
    cdef readonly bint leaving
