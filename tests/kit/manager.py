"""A service manager as a fleet sees it: the socket to which it reports."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_CREDENTIALS = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid


@dataclass(frozen=True, slots=True)
class Report:
    """One datagram: its lines, and who sent it."""

    lines: list[str]
    pid: int

    @property
    def status(self) -> str:
        """The text after STATUS=, "" without one."""
        return next((line.partition("=")[2] for line in self.lines if line.startswith("STATUS=")), "")

    @property
    def news(self) -> list[str]:
        """The lines but for STATUS and WATCHDOG."""
        return [line for line in self.lines if not line.startswith(("STATUS=", "WATCHDOG="))]


class Manager:
    """Listens at an address as NOTIFY_SOCKET names it: a path, or "@" and a name of the abstract namespace."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.sock.settimeout(20)
        self.sock.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    def hear(self) -> Report:
        """The next datagram; TimeoutError after twenty seconds of silence."""
        data, extra, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(_CREDENTIALS.size))
        pid = _CREDENTIALS.unpack(extra[0][2])[0]
        return Report(data.decode().split("\n"), pid)

    def until(self, wanted: str) -> list[Report]:
        """Everything up to the first report with a line that begins so."""
        heard: list[Report] = []
        while not heard or not any(line.startswith(wanted) for line in heard[-1].lines):
            heard.append(self.hear())
        return heard

    def rest(self) -> Iterator[Report]:
        """What is there already."""
        self.sock.settimeout(0)
        try:
            while True:
                yield self.hear()
        except BlockingIOError:
            return

    def close(self) -> None:
        """Hears nothing more."""
        self.sock.close()
