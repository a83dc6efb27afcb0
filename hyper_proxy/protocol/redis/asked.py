# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""What a redis request asks for, told from its bytes once more, for those that are looked at more closely."""

from __future__ import annotations

import cython

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.look import Asked
from hyper_proxy.protocol.redis import wording
from hyper_proxy.protocol.redis.command import BLOCK, SINGLE
from hyper_proxy.protocol.redis.commands import COMMANDS, keys_of, resolve
from hyper_proxy.protocol.redis.framing import Framer, split_line, words
from hyper_proxy.stats.classes import READ

if not cython.compiled:
    from hyper_proxy.protocol.redis.command import Command

ANY = 1 << 62  # the requests were within the limits when they were walked over


def describe(buf: bytes, start: cython.Py_ssize_t, end: cython.Py_ssize_t, index: cython.Py_ssize_t) -> Asked | None:
    """The request number `index` of those in buf[start:end]; None when there is none.

    Only what is a command is named: any other word may be a piece of a value that was cut wrongly.
    """
    framer: Framer = Framer(ANY, ANY, ANY)
    stop: cython.Py_ssize_t = start
    command: Command | None
    while start < end:
        try:
            stop = framer.scan(buf, start)
        except ClientError:
            return None
        if stop < 0:
            return _begun(buf, start)
        if framer.argc and not (framer.inline and buf[start:stop].isspace()):
            if index == 0:
                break
            index -= 1
        start = stop
    if start >= end:
        return None
    if framer.inline:
        return _described_line(buf[start : stop - 1])
    name: bytes = buf[framer.name_start : framer.name_end].lower()
    command = COMMANDS.get(name)
    if (
        command is not None
        and command.treatment == SINGLE
        and command.first == 1
        and command.klass == READ
        and command.accepts(framer.argc)
    ):
        return Asked(name.decode(), [buf[framer.key_start : framer.key_end]])
    return _described(words(buf, framer.args, stop))


def _described_line(line: bytes) -> Asked | None:
    try:
        argv = split_line(line)
    except ClientError:
        return _unclear(_first_word(line))
    return _described(argv)


def _first_word(line: bytes) -> bytes:
    return b"".join(line.split(None, 1)[:1])


def _begun(buf: bytes, start: int) -> Asked:
    if not buf.startswith(b"*", start):
        return _unclear(_first_word(buf[start:]))
    framer = Framer(ANY, ANY, ANY)
    framer.scan(buf, start)  # its places count from the request's start, until it is whole
    return _unclear(buf[start + framer.name_start : start + framer.name_end])


def _unclear(name: bytes) -> Asked:
    command: Command | None = COMMANDS.get(name.lower())
    return Asked("" if command is None else command.name.decode(), [])


def _described(argv: list[bytes]) -> Asked | None:
    if not argv:
        return None
    try:
        row = resolve(argv)
        positions = keys_of(row, argv)
    except (wording.ErrorReply, IndexError, ValueError):
        return _unclear(argv[0])
    keys = [argv[position] for position in positions]
    blocking = row.treatment == BLOCK and (row.blocks is None or row.blocks(argv))
    name = row.name.decode()
    if row.klass == READ or not keys:
        return Asked(name, keys, blocking)
    ends = [*positions[1:], len(argv)]
    given = [sum(map(len, argv[at + 1 : until])) for at, until in zip(positions, ends, strict=True)]
    return Asked(name, keys, blocking, given)


def sizes(asked: Asked, reply: bytes) -> list[int] | None:
    """The bytes of each key's value in the reply; None when it is not made of one value a key."""
    kind = reply[:1]
    if len(asked.keys) == 1:
        if kind == b"$":
            return [max(0, int(reply[1 : reply.index(b"\r")]))]
        return [len(reply)] if kind in b"*%~" else None
    if asked.command != "mget" or kind != b"*":
        return None
    at = reply.index(b"\n") + 1
    found: list[int] = []
    while at < len(reply):
        line = reply.index(b"\n", at)
        size = int(reply[at + 1 : line - 1]) if reply[at : at + 1] == b"$" else -1
        found.append(max(0, size))
        at = line + 1 + (size + 2 if size >= 0 else 0)
    return found
