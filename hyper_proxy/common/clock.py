# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The clocks: of deadlines and latencies, monotonic and the same for all processes of a machine; and of work done."""

import time

import cython

MONOTONIC = cython.declare(cython.int, time.CLOCK_MONOTONIC)
CPU_OF_PROCESS = cython.declare(cython.int, time.CLOCK_PROCESS_CPUTIME_ID)


@cython.cfunc
@cython.inline
def _read(clock: cython.int) -> cython.double:
    """A clock of the system, in seconds."""
    if cython.compiled:
        at = cython.declare(timespec)  # type: ignore[name-defined]  # noqa: F821
        clock_gettime(clock, cython.address(at))  # type: ignore[name-defined]  # noqa: F821
        return at.tv_sec + at.tv_nsec * 1e-9
    else:
        return time.clock_gettime(clock)


@cython.ccall
def now() -> cython.double:
    """Seconds since some moment; compiled, without making a Python float for callers that are compiled too."""
    return _read(MONOTONIC)


@cython.ccall
def cpu() -> cython.double:
    """Seconds that this process has spent on a core, in all its threads."""
    return _read(CPU_OF_PROCESS)
