# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""How busy this process is: the share of one core that it has used of late; and what it does while it is.

Asked for on the request's path, so it is measured at most once per window and costs two reads of a clock then.
"""

import os

import cython

if not cython.compiled:
    from hyper_proxy.common.clock import cpu, now

WINDOW_S = 0.02
BUSY_SHARE = 0.2


@cython.cclass
class Load:
    """One for the process: LOAD. generous: does it give way (`[proxy] scheduling`)?"""

    def __init__(self) -> None:
        self.busy = self.generous = False
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

    @cython.ccall
    def give_way(self) -> None:
        """While it is busy, let whoever waits for this core go first: the servers that were just asked, and then their
        clients. What they do meanwhile is there to be done at once. If nobody waits, this does nothing."""
        if self.generous and self.is_busy(now()):
            _yield()
            _yield()


@cython.cfunc
@cython.inline
def _yield() -> cython.void:
    if cython.compiled:
        sched_yield()  # type: ignore[name-defined]  # noqa: F821
    else:
        os.sched_yield()


LOAD = Load()
