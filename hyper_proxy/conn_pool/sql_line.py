# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Statements over a connection that is logged in: whoever asks sleeps until the whole answer is there.

The event loop watches the connection as long as it lives, and takes in the answer piece by piece; the greenlet is
switched to once. What comes between two statements nobody has asked for: then the connection is of no more use.
"""

from __future__ import annotations

from collections.abc import Callable
from errno import EAGAIN, EINTR
from socket import MSG_DONTWAIT, MSG_PEEK
from typing import Any

import cython
from gevent import get_hub
from greenlet import getcurrent, greenlet

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.sockio import recv, send
    from hyper_proxy.conn_pool.sql_answer import Answer

SLACK_S = cython.declare(cython.double, 0.0005)  # a timer may be so early


@cython.cclass
class Line:
    """`sock`: a connected gevent socket that is empty.

    is_late: an answer was not there in time
    """

    sock: Any
    fd: cython.int
    is_late: cython.bint
    bytes_in: cython.Py_ssize_t
    bytes_out: cython.Py_ssize_t
    answer: Answer | None  # as far as it has come; None when nothing is asked
    failure: Exception | None  # instead of the answer
    ended: cython.bint  # is the answer whole, or will not come?
    unasked: cython.bint  # something came between two statements
    deadline: cython.double
    loop: Any
    reader: Any
    timer: Any
    switch_in: Callable[[], object] | None
    switch_out: Callable[[], object]

    def __init__(self, sock: Any) -> None:
        self.sock = sock
        self.fd = sock.fileno()
        self.is_late = self.ended = self.unasked = False
        self.bytes_in = self.bytes_out = 0
        self.answer = None
        self.failure = None
        self.deadline = 0.0
        hub = get_hub()
        self.loop = hub.loop
        self.switch_in = None
        self.switch_out = greenlet.switch.__get__(hub)  # see common/gather.py
        self.timer = None
        self.reader = self.loop.io(self.fd, 1)
        self.reader.start(self._on_readable)

    @cython.ccall
    def ask(self, data: bytes, deadline: cython.double) -> Answer:
        """Send a statement and wait for its answer, until this moment of the clock. Raises OSError and ValueError."""
        if self.unasked:
            raise ConnectionResetError("the server has ended it, or said what nobody has asked for")
        answer: Answer = Answer()
        self.answer = answer
        self.failure = None
        self.ended = False
        self.deadline = deadline
        try:
            sent: cython.Py_ssize_t = send(self.fd, data, 0)
            if sent < len(data):
                self._send_rest(data[sent:])
            self.bytes_out += len(data)
            if self.timer is None:
                self._start_timer(deadline - now())
            if not self.ended:
                self.switch_in = getcurrent().switch
                self.switch_out()
        finally:
            self.switch_in = None
            self.answer = None
        if self.failure is not None:
            raise self.failure
        return answer

    def _send_rest(self, data: bytes) -> None:
        try:
            self.sock.settimeout(max(self.deadline - now(), SLACK_S))
            self.sock.sendall(data)
        except TimeoutError:
            self.is_late = True
            raise

    def _on_readable(self) -> None:
        answer: Answer | None = self.answer
        if answer is None or self.ended:
            self.unasked = True
            self.reader.stop()
            return
        try:
            data: bytes | None = recv(self.fd)
            if data is None:
                return
            if not data:
                raise ConnectionResetError("the server closed it")
            self.bytes_in += len(data)
            if not answer.feed(data):
                return
        except (OSError, ValueError) as failure:
            self.failure = failure
        self._end()

    @cython.cfunc
    def _end(self) -> None:
        self.ended = True
        if self.switch_in is not None:
            self.switch_in()

    def _start_timer(self, seconds: float) -> None:
        self.timer = self.loop.timer(max(seconds, SLACK_S))
        self.timer.start(self._on_timer)

    def _on_timer(self) -> None:
        """The deadline of the statement for which the timer was started; is it that of the present one?"""
        self.timer.close()
        self.timer = None
        if self.answer is None or self.ended:
            return
        left: cython.double = self.deadline - now()
        if left <= SLACK_S:
            # Was it the worker itself that had no time? Then the answer is there by now.
            self._on_readable()
            if self.answer is None or self.ended or self.timer is not None:
                return
            self.is_late = True
            self.failure = TimeoutError("timed out")
            self._end()
            return
        self._start_timer(left)

    @cython.ccall
    @cython.exceptval(-1, check=False)
    def is_quiet(self) -> cython.bint:
        """Between two statements: has the server neither ended the connection nor said what nobody has asked for?"""
        if self.unasked:
            return False
        if cython.compiled:
            byte: cython.uchar = 0
            flags: cython.int = MSG_PEEK | MSG_DONTWAIT
            count: cython.Py_ssize_t = c_peek(self.fd, cython.address(byte), 1, flags)  # type: ignore[name-defined]  # noqa: F821
            return count < 0 and errno in (EAGAIN, EINTR)  # type: ignore[name-defined]  # noqa: F821
        else:
            try:
                self.sock._sock.recv(1, MSG_PEEK | MSG_DONTWAIT)
            except BlockingIOError:
                return True
            except OSError:
                return False
            return False

    def close(self) -> None:
        """End it, without a word: the server notices."""
        self.reader.close()
        if self.timer is not None:
            self.timer.close()
            self.timer = None
        self.sock.close()
