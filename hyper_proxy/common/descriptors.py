"""How near this process is to its last file descriptor, and what is kept back for the servers.

The system gives out the lowest number that is free, so the number of a new descriptor says how many are in use, at no
cost. Clients come uncalled and in any number; without a reserve they would take the descriptors with which a lost
server is dialled again, and the proxy would be full and useless at once.
"""

from __future__ import annotations

import errno
import resource

EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
"""The system has no descriptor, or no memory for one, at the moment."""

LARGEST_SHARE = 0.25  # of the limit is kept back at most: with few descriptors there must be clients, too


class Reserve:
    """One for the process."""

    def __init__(self) -> None:
        self.wanted = 0

    def keep(self, count: int) -> None:
        """From now on so many descriptors are kept back."""
        self.wanted = count

    def holds(self, fd: int) -> bool:
        """Is this descriptor one of those that are kept back? The limit is asked anew, for it can be changed."""
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return fd >= limit - min(self.wanted, int(limit * LARGEST_SHARE))


RESERVE = Reserve()
