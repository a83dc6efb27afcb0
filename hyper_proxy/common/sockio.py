# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""One recv and one send on a non-blocking socket, without the allocation and argument parsing of Python's own.

The compiled form calls the C functions and reads into one buffer that the whole worker shares: an idle connection owns
no buffer at all.
"""

import os
from array import array
from errno import EAGAIN, EINTR
from fcntl import ioctl
from termios import FIONREAD, TIOCOUTQ

import cython

READ_BYTES = 262144  # one read; more only means a second one at the next turn of the loop

_buffer: bytearray = bytearray(READ_BYTES)


@cython.ccall
def recv(fd: cython.int) -> bytes | None:
    """What has arrived, at most READ_BYTES; b"" at the end of the stream, None if nothing is there. Raises OSError."""
    if cython.compiled:
        shared: bytearray = _buffer
        p: cython.p_uchar = shared
        n: cython.Py_ssize_t = c_recv(fd, p, READ_BYTES, MSG_DONTWAIT)  # type: ignore[name-defined]  # noqa: F821
        if n >= 0:
            return p[:n]
        code: cython.int = errno  # type: ignore[name-defined]  # noqa: F821
        if code in (EAGAIN, EINTR):
            return None
        raise OSError(code, os.strerror(code))
    else:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            return None


@cython.ccall
@cython.exceptval(-1, check=False)
def send(fd: cython.int, data: bytes, start: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Send data[start:] as far as the kernel takes it now; how many bytes it took, 0 when none. Raises OSError."""
    if cython.compiled:
        p: cython.p_uchar = data
        flags: cython.int = MSG_DONTWAIT | MSG_NOSIGNAL  # type: ignore[name-defined]  # noqa: F821
        n: cython.Py_ssize_t = c_send(fd, p + start, len(data) - start, flags)  # type: ignore[name-defined]  # noqa: F821
        if n >= 0:
            return n
        code: cython.int = errno  # type: ignore[name-defined]  # noqa: F821
        if code in (EAGAIN, EINTR):
            return 0
        raise OSError(code, os.strerror(code))
    else:
        try:
            return os.write(fd, memoryview(data)[start:])
        except BlockingIOError:
            return 0


def untaken(fd: int) -> int:
    """How many bytes the kernel has taken from us and the other end has not taken from it."""
    return _waiting(fd, TIOCOUTQ)


def unread(fd: int) -> int:
    """How many bytes have come and are not read."""
    return _waiting(fd, FIONREAD)


def _waiting(fd: int, which: int) -> int:
    count = array("i", [0])
    ioctl(fd, which, count)
    return count[0]
