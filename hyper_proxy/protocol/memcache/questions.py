# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What the forwarded requests of a batch have asked: every answer is held against it before it is passed on.

Memcached's answers carry their keys, so kind, key and number of items must fit. Most batches are one request, for which
no Python object is made.
"""

from typing import Any

import cython

from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.commands import UNKNOWN
from hyper_proxy.storage.memcache_replies import ERRORS

if not cython.compiled:
    from hyper_proxy.protocol.memcache.command import Command
    from hyper_proxy.protocol.memcache.fanout import item_end

END_BYTES = 5  # "END" CRLF
FIELDS = 4  # of one entry of `more`


@cython.cclass
class Questions:
    """slot, command, key_start, place
             of the first one: its slot (-1: there is none), its row, where its key begins in the bytes that were read,
             and the key's size (8 bits) with the shard
    more     the same of those behind it, in turn
    """

    def __init__(self) -> None:
        self.slot = -1
        self.command = UNKNOWN
        self.key_start = self.place = 0
        self.more: list = []

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def note(self, slot: cython.Py_ssize_t, command: Command, key_start: cython.Py_ssize_t,
             key_size: cython.Py_ssize_t, shard: cython.Py_ssize_t) -> cython.bint:
        """The answer in this slot is to be that of the shard to this command, about this key."""
        place: cython.Py_ssize_t = shard << 8 | key_size
        more: list = self.more
        if self.slot < 0:
            self.slot = slot
            self.command = command
            self.key_start = key_start
            self.place = place
        else:
            more.append(slot)
            more.append(command)
            more.append(key_start)
            more.append(place)
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def check(self, slots: list, buf: bytes, session: Any) -> cython.bint:
        """Replace the answers in these slots that do not fit, or are not passed on; the next batch begins anew."""
        i: cython.Py_ssize_t = 0
        if self.slot < 0:
            return True
        self.hold_against(slots, buf, session, self.slot, self.command, self.key_start, self.place)
        self.slot = -1
        if self.more:
            more, self.more = self.more, []
            while i < len(more):
                self.hold_against(slots, buf, session, more[i], more[i + 1], more[i + 2], more[i + 3])
                i += FIELDS
        return True

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def hold_against(self, slots: list, buf: bytes, session: Any, slot: cython.Py_ssize_t, command: Command,
                     key_start: cython.Py_ssize_t, place: cython.Py_ssize_t) -> cython.bint:
        """Replace the answer in one slot."""
        reply: object = slots[slot]
        if isinstance(reply, bytes):
            if not _fits(command, reply, buf, key_start, place & 255):
                slots[slot] = session.misfit(place >> 8)
            elif command.hides and reply.startswith(command.hides):
                slots[slot] = b""
        return True


@cython.cfunc
@cython.inline
@cython.exceptval(-1, check=False)
def _fits(command: Command, reply: bytes, buf: bytes, key_start: cython.Py_ssize_t,
          key_size: cython.Py_ssize_t) -> cython.bint:
    """Can this be the answer to that command, about the key at buf[key_start:]?"""
    p: cython.p_uchar = reply
    if command.answers:
        return reply.startswith(command.answers)
    if p[0] == 86:
        # One item, of the key that was asked for, and END.
        return item_end(reply, 0, buf, key_start, key_start + key_size) == len(reply) - END_BYTES
    return reply == wording.END or reply.startswith(ERRORS)
