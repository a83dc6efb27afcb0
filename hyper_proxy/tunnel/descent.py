# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A batch over levels whose first one speaks the client's protocol: hits travel as they came, misses go down.

A read is sent to the first level as with one level only. The reply of a part that lacks nothing fills its slot at once,
in the event loop. Another one keeps its slot open while a greenlet of its own asks the levels below; slow siblings are
not waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cython
from gevent import get_hub, spawn

from hyper_proxy.common import faults
from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.cache import MARK

if not cython.compiled:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.tunnel.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Callable

ERROR = 45  # "-", with which errors of redis begin


@cython.cclass
class Descent(Batch):
    """nil: how the client's protocol says nothing; a reply with it, with a mark, or that is an error, may lack a value.
    complete_below(raw, shard, reply): the whole reply to that request, from below where it must; raises BackendError.
    It may block.
    """

    nil: bytes
    complete_below: Callable[[Any, int, Any], bytes]
    reads: dict  # slot -> (request, shard), of reads that are under way
    who: Any  # for the report of a fault

    def __init__(self, who: Any, complete_below: Any) -> None:
        super().__init__()
        self.who = who
        self.nil = b""
        self.complete_below = complete_below
        self.reads = {}

    @cython.ccall
    def read(self, lane: Lane, raw: bytes | bytearray, klass: cython.Py_ssize_t, shard: cython.Py_ssize_t) -> None:
        """Send a read to the first level."""
        self.reads[len(self.slots)] = (raw, shard)
        self.send(lane, raw, klass)

    @cython.ccall
    def deliver(self, position: cython.Py_ssize_t, reply: bytes | BackendError) -> None:
        """A reply of the first level, or what came from below instead."""
        asked: tuple | None = self.reads.pop(position, None) if self.reads else None
        if asked is None or (isinstance(reply, bytes) and self.is_whole(reply)):
            Batch.deliver(self, position, reply)
        else:
            spawn(self._descend, position, reply, *asked)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_whole(self, reply: bytes) -> cython.bint:
        """Values that happen to contain these bytes are looked at more closely, that is all."""
        return reply[0] != ERROR and self.nil not in reply and MARK not in reply

    @cython.ccall
    def fail(self, position: cython.Py_ssize_t, error: BackendError) -> None:
        """The first level has failed: it has nothing, then."""
        if position in self.reads:
            self.deliver(position, error)
        else:
            Batch.fail(self, position, error)

    def _descend(self, position: int, reply: Any, raw: Any, shard: int) -> None:
        try:
            whole: Any = self.complete_below(raw, shard, reply)
        except BackendError as error:
            whole = error
        except Exception:  # noqa: BLE001  the slot must be filled, or the client would wait for ever
            faults.show(self.who)
            whole = BackendError("", "", "internal", "the levels below could not be asked")
        # In the event loop, as all replies come: whoever fills the last slot switches to the client, and not back.
        get_hub().loop.run_callback(self._fill, position, whole)

    def _fill(self, position: int, whole: bytes | BackendError) -> None:
        if isinstance(whole, BackendError):
            Batch.fail(self, position, whole)
        else:
            Batch.deliver(self, position, whole)
