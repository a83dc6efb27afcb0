"""Takes listening sockets out of the kernel's choice before they are closed.

The kernel spreads new connections over all listening sockets of an address (SO_REUSEPORT). One that is closed resets
whoever is in its queue at that moment, and emptying the queue first leaves a gap between the last accept and the close.
So new connections are first sent to the sockets that stay, by a program of two instructions that the kernel asks which
socket of the group is to be next: a random number, modulo how many stay. The members of a group are numbered in the
order in which they began to listen: the order of the slots, and it is always the last slots that go.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
from collections.abc import Sequence

from hyper_proxy.common import log

# asm-generic/socket.h; the socket module does not name them.
SO_ATTACH_REUSEPORT_CBPF = 51
SO_DETACH_REUSEPORT_BPF = 68

# linux/bpf_common.h, linux/filter.h: load the word at "ancillary offset, random number"; A %= k; return A.
_LOAD, _MODULO, _RETURN_A = 0x20, 0x94, 0x16
_RANDOM = 0xFFFFF000 + 56  # SKF_AD_OFF + SKF_AD_RANDOM

# How long connections whose handshake has begun before may take to reach the queue of a socket that goes.
HANDSHAKE_S = 1.0


def steer(sockets: Sequence[socket.socket], staying: int) -> None:
    """Sends new connections to the first `staying` sockets of one address only. A system that refuses loses those who
    come in the instant of the close; that is logged."""
    rows = [(_LOAD, _RANDOM), (_MODULO, staying), (_RETURN_A, 0)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", row, 0, 0, value) for row, value in rows))
    program = struct.pack("@HP", len(rows), ctypes.addressof(code))  # struct sock_fprog
    try:
        sockets[0].setsockopt(socket.SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program)
    except OSError as error:
        log.warning("listener.not_steered", address=sockets[0].getsockname(), error=error)


def release(sockets: Sequence[socket.socket]) -> None:
    """Lets the kernel choose among all sockets of the address again."""
    try:
        sockets[0].setsockopt(socket.SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, 0)
    except OSError as error:
        if error.errno != errno.ENOENT:  # it has chosen among all of them all the time
            log.warning("listener.not_steered", address=sockets[0].getsockname(), error=error)
