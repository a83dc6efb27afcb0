# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A closed-loop memcache client; main() takes PORT CLIENTS REQUESTS KEYS KEYSPACE VALUE_BYTES from the command line.

Every connection sends its next `get` when the reply to the last one is complete, as redis-benchmark does for redis. All
keys must be there: the length of a reply is known then, and a missing or garbled one ends the run with an error. The
requests are made before the clock starts. Prints requests per second.
"""

import os
import random
import select
import socket
import sys
import time

import cython

PREPARED = 4096  # different requests; they are sent in turn
SILENCE_S = 10.0


@cython.ccall
def receive(fd: cython.int, buf: bytearray) -> cython.Py_ssize_t:
    """Read what has arrived; how many bytes."""
    n: cython.Py_ssize_t
    if cython.compiled:
        p: cython.p_uchar = buf
        n = c_recv(fd, p, len(buf), 0)  # type: ignore[name-defined]  # noqa: F821
    else:
        n = os.readv(fd, [buf])
    if n <= 0:
        raise ConnectionError("the proxy closed a connection")
    return n


@cython.ccall
def transmit(fd: cython.int, request: bytes) -> cython.Py_ssize_t:
    """Send a request; it is small, so it fits the kernel's buffer."""
    if cython.compiled:
        p: cython.p_uchar = request
        return c_send(fd, p, len(request), 0)  # type: ignore[name-defined]  # noqa: F821
    else:
        return os.write(fd, request)


def prepared(keys: int, keyspace: int) -> list[bytes]:
    """Requests for random keys, the same ones in every run."""
    source = random.Random(keys)
    names = ([b"key:%012d" % number for number in source.sample(range(keyspace), keys)] for _ in range(PREPARED))
    return [b"get " + b" ".join(some) + b"\r\n" for some in names]


def reply_bytes(keys: int, value_bytes: int) -> int:
    """Length of the reply to `keys` keys that are all there."""
    return keys * (len(b"VALUE key:000000000000 0 %d\r\n" % value_bytes) + value_bytes + 2) + len(b"END\r\n")


def run(port: int, clients: int, requests: int, keys: int, keyspace: int, value_bytes: int) -> float:
    """Requests per second."""
    wanted = prepared(keys, keyspace)
    size = reply_bytes(keys, value_bytes)
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(clients)]
    poll = select.epoll()
    buf = bytearray(size + 1)
    for sock in sockets:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(sock.fileno(), select.EPOLLIN)
    missing = {sock.fileno(): size for sock in sockets}
    begin = time.monotonic()
    for number, sock in enumerate(sockets):
        sock.sendall(wanted[number])
    done = 0
    while done < requests:
        ready = poll.poll(SILENCE_S)
        if not ready:
            raise TimeoutError(f"silent for {SILENCE_S} s: bytes awaited, by connection: {sorted(missing.values())}")
        for fd, _ in ready:
            missing[fd] -= receive(fd, buf)
            if missing[fd] <= 0:
                if missing[fd] < 0:
                    raise ValueError("a reply is longer than its keys and values")
                missing[fd] = size
                done += 1
                transmit(fd, wanted[done % PREPARED])
    elapsed = time.monotonic() - begin
    for sock in sockets:
        sock.close()
    return done / elapsed


def main() -> None:
    """The command line: six numbers."""
    print(run(*map(int, sys.argv[1:])))
