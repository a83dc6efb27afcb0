# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The clocks: of deadlines and latencies, monotonic and the same for all processes of a machine; and of work done."""

import time

import cython


@cython.ccall
def now() -> cython.double:
    """Seconds since some moment; compiled, without making a Python float for callers that are compiled too."""
    if cython.compiled:
        at = cython.declare(timespec)  # type: ignore[name-defined]  # noqa: F821
        clock_gettime(CLOCK_MONOTONIC, cython.address(at))  # type: ignore[name-defined]  # noqa: F821
        return at.tv_sec + at.tv_nsec * 1e-9
    else:
        return time.monotonic()


@cython.ccall
def cpu() -> cython.double:
    """Seconds that this process has spent on a core, in all its threads."""
    if cython.compiled:
        at = cython.declare(timespec)  # type: ignore[name-defined]  # noqa: F821
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, cython.address(at))  # type: ignore[name-defined]  # noqa: F821
        return at.tv_sec + at.tv_nsec * 1e-9
    else:
        return time.process_time()
