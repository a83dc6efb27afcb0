"""Free ports on the loopback interface."""

from __future__ import annotations

import random
import socket
from collections import deque

# Below the range from which the kernel takes ports for outgoing connections, so that no client snatches one meanwhile.
FIRST, LAST = 20_000, 32_000
_random = random.Random()  # seeded by the system: test runs beside each other look in different places
_given: deque[int] = deque(maxlen=1000)  # nobody may listen there yet, and one fleet wants many


def free_port() -> int:
    """A port on which nobody listens now, and that was not given to anybody else just before."""
    while True:
        port = _random.randrange(FIRST, LAST)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.append(port)
        return port


def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Does anybody accept connections there?"""
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True
