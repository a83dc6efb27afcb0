# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""How busy this process is: the share of one core that it has used of late.

Asked for on the request's path, so it is measured at most once per window and costs two reads of a clock then.
"""

import cython

if not cython.compiled:
    from hyper_proxy.common.clock import cpu, now

WINDOW_S = 0.02
BUSY_SHARE = 0.2


@cython.cclass
class Load:
    """One for the process."""

    def __init__(self) -> None:
        self.busy = False
        self.looked_at = now()
        self.used_s = cpu()

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def is_busy(self, at: cython.double) -> cython.bint:
        """Was more than BUSY_SHARE of a core used in the last window? at: now."""
        elapsed: cython.double = at - self.looked_at
        if elapsed >= WINDOW_S:
            used: cython.double = cpu()
            self.busy = used - self.used_s > BUSY_SHARE * elapsed
            self.looked_at = at
            self.used_s = used
        return self.busy
