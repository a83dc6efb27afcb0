# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One client's connection: read what has come, write what must go.

The read watcher stays registered for the life of the connection, so a request costs no epoll_ctl; bytes are asked for
once, when they are there. They are offered to the session's express way first, and else wake the connection's greenlet.
"""

from __future__ import annotations

from collections.abc import Callable
from errno import ENOTCONN, EPIPE
from select import POLLRDHUP
from socket import SHUT_RDWR, socket
from typing import Any

import cython
from gevent import get_hub
from gevent.lock import Semaphore
from gevent.monkey import get_original
from gevent.socket import wait_write
from greenlet import getcurrent, greenlet

from hyper_proxy.common.sockio import untaken
from hyper_proxy.entry.lingering import LINGERING

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.express import Giver, Taker
    from hyper_proxy.common.sockio import recv, send

SLOW_BYTES = 1024  # a client that takes less within write_s takes nothing

select_poll = get_original("select", "poll")  # asked with a timeout of 0: gevent's would go through the event loop


@cython.cclass
class Client(Giver):
    """sock: connected and non-blocking; address: what to call the client; local_address: the listener it came to;
    write_s: a client that takes nothing for so long is cut.
    """

    sock: socket
    address: str
    local_address: str
    fd: cython.int
    bytes_in: cython.Py_ssize_t
    bytes_out: cython.Py_ssize_t
    since: cython.double
    reading: cython.bint
    arrived: cython.bint
    busy: cython.bint  # an express batch is under way
    closed: cython.bint
    writers: cython.int
    kept: cython.Py_ssize_t  # bytes of a large request that is not whole; the session says it
    lacking: cython.Py_ssize_t  # bytes that it lacks at least
    held: cython.bint  # not read from, for memory is short
    leaving: cython.bint  # it ends when all is answered that has come
    dismissed: cython.bint  # the session ends it, and it may be sending what nobody reads
    express: Taker | None  # the session
    on_hang_up: Callable[[], None] | None  # called when the client goes away while its request is being answered
    # Called with the size of an answer of which the client does not take all at once; and with 0 when that is over.
    on_stall: Callable[[int], None] | None
    data: bytes | None
    unsent: bytes | None
    switch_in: Callable[[], object]
    switch_out: Callable[[], object]
    callback: Callable[[], None]
    watcher: Any
    write_s: cython.double

    def __init__(self, sock: socket, address: str, local_address: str, write_s: float) -> None:
        self.sock = sock
        self.address = address
        self.local_address = local_address
        self.fd = sock.fileno()
        self.write_s = write_s
        self.bytes_in = 0
        self.bytes_out = 0
        self.since = now()
        self.reading = False
        self.arrived = False
        self.busy = False
        self.express = None
        self.data = None
        self.unsent = None
        self.kept = 0
        self.lacking = 0
        self.held = False
        self.leaving = False
        self.dismissed = False
        self.closed = False
        self.writers = 0  # greenlets that wait until they can write on
        self.on_hang_up = None
        self.on_stall = None
        self.stalled = False
        self.turn = None
        hub = get_hub()
        self.switch_in = getcurrent().switch
        self.switch_out = greenlet.switch.__get__(hub)  # see common/gather.py
        self.callback = self._on_readable
        self.watcher = hub.loop.io(self.fd, 1)
        self.watcher.start(self.callback)

    def _on_readable(self) -> None:
        if not self.reading or self.busy:
            # Bytes came while the request before them is being answered: remember, and stop being told.
            self.arrived = True
            self.watcher.stop()
            self.look_for_hang_up()
            return
        data: bytes | None = self._receive()
        if data is None:
            return
        if data and self._offer(data):
            return
        self._wake(data)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _offer(self, data: bytes) -> cython.bint:
        """Offer bytes to the express way: are they taken?

        A failure of the session there ends this client, as one in its greenlet would.
        """
        failed: cython.bint = True
        express: Taker | None = self.express  # held, for it may end this client, which is all that holds it
        if express is None:
            return False
        self.busy = True
        try:
            taken: cython.bint = express.take_express(data)
            failed = False
        finally:
            if failed:
                self.answer_express(b"", b"")
        if not taken:
            self.busy = False
        return taken

    @cython.ccall
    def answer_express(self, out: bytes, later: bytes | None) -> None:
        """The express batch is answered: write, and go on reading. With `later` the greenlet goes on, b"" ends it."""
        done: cython.Py_ssize_t
        try:
            done = send(self.fd, out, 0) if out else 0
        except OSError:
            self.busy = False
            self._wake(b"")
            return
        self.bytes_out += done
        self.busy = False
        if done < len(out):
            self.unsent = out[done:]
            self._stall(len(out))
            self._wake(later)
        elif later is not None:
            self._stall(0)  # the client has all of it; what is next may be answered before this returns
            self._wake(later)
        else:
            if self.arrived:
                self.arrived = False
                self.watcher.start(self.callback)
            if self.leaving:
                self._leave_soon()

    @cython.cfunc
    def _wake(self, data: bytes | None) -> None:
        self.reading = False
        self.data = data
        self.switch_in()

    @cython.cfunc
    def _receive(self) -> bytes | None:
        """What has come, b"" at the end, None when there is nothing."""
        try:
            data: bytes | None = recv(self.fd)
        except OSError:
            return b""
        if data is not None:
            self.bytes_in += len(data)
        return data

    @cython.ccall
    def read(self) -> bytes:
        """Wait for bytes; b"" when the client is gone, or is to go. While it waits, express batches may pass."""
        data: bytes | None
        while True:
            if self.arrived:
                self.arrived = False
                self.watcher.start(self.callback)
                data = self._receive()
            elif self.leaving and not self.kept:
                data = self._receive() or b""
            else:
                self.reading = True
                self.switch_out()
                data, self.data = self.data, None
            if self.unsent is not None:
                self._write_unsent()
            if data is not None:
                return data

    @cython.cfunc
    def _write_unsent(self) -> None:
        """A function of its own, so that nothing keeps the bytes while the client waits for what is next."""
        rest, self.unsent = self.unsent, None
        self.write(rest)
        self._stall(0)

    def look_for_hang_up(self) -> bool:
        """Call on_hang_up if the client has ended the connection, be it behind requests that are not read yet; has it?

        Where nobody wants to be told it is not looked for.
        """
        if self.on_hang_up is None:
            return False
        poll = select_poll()
        poll.register(self.fd, POLLRDHUP)
        gone = bool(poll.poll(0))
        if gone:
            self.on_hang_up()
        return gone

    @property
    def shared(self) -> bool:
        """Does somebody else write to it, too: does it listen to channels?"""
        return self.turn is not None

    @property
    def idle(self) -> bool:
        """Is nothing of it being answered, and could it say something?"""
        return self.reading and not self.busy and not self.held

    @cython.ccall
    def write(self, data: bytes) -> None:
        """Send all of it; a client that reads slowly is waited for, one that reads nothing raises TimeoutError."""
        if self.turn is None:
            self._write(data)
        else:
            with self.turn:
                self._write(data)

    def share(self) -> None:
        """From now on several greenlets write: each `write` is whole."""
        if self.turn is None:
            self.turn = Semaphore()

    @cython.ccall
    def _write(self, data: bytes) -> None:
        n: cython.Py_ssize_t = len(data)
        if self.closed:
            raise BrokenPipeError(EPIPE, "the client is gone")
        done: cython.Py_ssize_t = send(self.fd, data, 0)
        self.bytes_out += n
        if done < n:
            self.writers += 1
            self._stall(n)
            try:
                while done < n:
                    self._wait_for_room()
                    done += send(self.fd, data, done)
            finally:
                self.writers -= 1
                self._stall(0)
                if self.closed and not self.writers:
                    self.sock.close()

    def _stall(self, size: int) -> None:
        self.stalled = size > 0
        if self.on_stall is not None:
            self.on_stall(size)

    def _wait_for_room(self) -> None:
        """Wait until it can be sent more; TimeoutError when less than SLOW_BYTES were taken in write_s.

        The kernel says that there is room only when a third of its buffer is free, which is more than a megabyte: who
        reads slowly but steadily is not silent.
        """
        before = untaken(self.fd)
        while True:
            try:
                wait_write(self.fd, self.write_s)
                return
            except TimeoutError:
                left = untaken(self.fd)
                if before - left < SLOW_BYTES:
                    raise
                before = left

    def leave(self) -> None:
        """End the connection between two requests: what has come is still answered, then the reader sees the end.

        It is not shut for reading: of what comes on such a connection nobody hears any more, and that is what takes the
        last answer from a client (lingering.py).
        """
        self.leaving = True
        self._leave_soon()

    def _leave_soon(self) -> None:
        get_hub().loop.run_callback(self._leave_if_idle)

    def _leave_if_idle(self) -> None:
        """Who is busy, or in the middle of a large request, sees for himself when that is answered."""
        if self.closed or self.busy or self.kept or not self.reading:
            return
        self.release()
        self._wake(self._receive() or b"")

    def hold(self) -> None:
        """Read no more, if it is between two reads of one request; the kernel makes the client wait."""
        if self.reading and not self.busy and not self.held:
            self.held = True
            self.watcher.stop()

    def release(self) -> None:
        """Go on reading."""
        if self.held and not self.closed:
            self.held = False
            self.watcher.start(self.callback)

    def hang_up(self) -> None:
        """End the connection now."""
        self._shut(SHUT_RDWR)

    def _shut(self, how: int) -> None:
        if self.closed:
            return
        self.release()  # to see the end
        try:
            self.sock.shutdown(how)
        except OSError as error:
            if error.errno != ENOTCONN:  # the client was faster
                raise

    def close(self) -> None:
        """Give everything back; the descriptor only when nobody waits on it: its number is soon another client's."""
        self.watcher.close()
        if self.writers:
            self._shut(SHUT_RDWR)  # wakes who waits
        elif self.dismissed or self.leaving:
            LINGERING.take(self.sock)
        else:
            self.sock.close()
        self.closed = True
        self.express = self.on_stall = None  # of the session, which holds this client
