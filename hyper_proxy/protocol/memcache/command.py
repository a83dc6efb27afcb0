# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One row of the memcache command table."""

from __future__ import annotations

import cython

# Forms of a request: how its line is read.
RETRIEVE = 0  # get key*
RETRIEVE_TOUCHING = 1  # gat exptime key*
STORE = 2  # set key flags exptime bytes [noreply], and the value
STORE_CAS = 3  # cas key flags exptime bytes cas [noreply], and the value
NUMBER = 4  # incr key delta [noreply]
EXPTIME = 5  # touch key exptime [noreply]
DELETE = 6  # delete key [0] [noreply]
META = 7  # mg key flag*
META_STORE = 8  # ms key bytes flag*, and the value
META_DEBUG = 9  # me key [b]
LOCAL = 10  # answered by the proxy, or asked of all nodes
REFUSED = 11  # known, not served
NONE = 12  # there is no such command


@cython.cclass
class Command:
    """A command.

    name         lower case, as it must be written
    form         one of the constants above
    least, most  number of words, the name included; most 0: no limit
    klass        READ, IDEMPOTENT, WRITE or ADMIN of hyper_proxy.stats.classes
    answers      what a server's answer may begin with; empty for retrievals, whose answer is checked against the key
    hides        of a quiet request: answers that are not passed on
    quiet        the row for requests of this command that carry the flag q, or None
    why          for REFUSED: the reason
    dangerous    served only when the instance's `allow` names it
    """

    def __init__(self, name: bytes, form: int, least: int, most: int, klass: int, answers: tuple[bytes, ...] = (),
                 hides: tuple[bytes, ...] = (), quiet: Command | None = None, why: str = "",
                 dangerous: bool = False) -> None:
        self.name = name
        self.form = form
        self.least = least
        self.most = most
        self.klass = klass
        self.answers = answers
        self.hides = hides
        self.quiet = quiet
        self.why = why
        self.dangerous = dangerous
