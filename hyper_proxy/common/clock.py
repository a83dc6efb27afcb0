# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The one clock of deadlines and latencies: monotonic seconds, the same for all processes of a machine."""

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
