"""Which keys a redis command that is no read may change; read with the key specifications of its documentation.

What is not in these tables has its one key behind the command. A key too many does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hyper_proxy.conn_pool.routes.speech import EVERYTHING

Words = Sequence[bytes]


def _counted(at: int) -> Callable[[Words], list[bytes]]:
    """The number of keys stands at `at`, the keys behind it."""
    return lambda words: list(words[at + 1 : at + 1 + int(words[at])])


def _behind(*names: bytes) -> Callable[[Words], list[bytes]]:
    """The key behind one of these words, and the first one."""
    return lambda words: [words[1], *(key for word, key in pairwise(words) if word.upper() in names)]


def _streams(words: Words) -> list[bytes]:
    at = next(at for at, word in enumerate(words) if word.upper() == b"STREAMS")
    return list(words[at + 1 : at + 1 + (len(words) - at - 1) // 2])


def _group(words: Words) -> list[bytes]:
    return list(words[2:3])


def _first_two(words: Words) -> list[bytes]:
    return list(words[1:3])


def _all(words: Words) -> list[bytes]:
    return list(words[1:])


def _nothing(words: Words) -> list[bytes]:
    return []


WRITTEN: dict[bytes, Callable[[Words], list[bytes]]] = {
    **dict.fromkeys((b"DEL", b"UNLINK", b"TOUCH"), _all),
    **dict.fromkeys((b"MSET", b"MSETNX"), lambda words: list(words[1::2])),
    **dict.fromkeys((b"RENAME", b"RENAMENX", b"COPY", b"SMOVE", b"LMOVE", b"RPOPLPUSH"), _first_two),
    **dict.fromkeys((b"EVAL", b"EVALSHA", b"FCALL"), _counted(2)),
    **dict.fromkeys((b"LMPOP", b"ZMPOP"), _counted(1)),
    **dict.fromkeys((b"SORT", b"GEORADIUS", b"GEORADIUSBYMEMBER"), _behind(b"STORE", b"STOREDIST")),
    **dict.fromkeys((b"BITOP", b"XGROUP"), _group),
    b"XREADGROUP": _streams,
    **dict.fromkeys((b"FLUSHDB", b"FLUSHALL"), lambda words: [EVERYTHING]),
    **dict.fromkeys((b"SCRIPT", b"FUNCTION", b"PUBLISH", b"SPUBLISH", b"WAIT", b"PING", b"ECHO"), _nothing),
}
UNTOLD = frozenset({b"MIGRATE", b"SWAPDB", b"MOVE", b"MULTI", b"EXEC"})


def keys_written(words: Words) -> list[bytes] | None:
    """Of a whole request; None where that can't be told."""
    name = words[0].upper()
    if name in UNTOLD:
        return None
    if name not in WRITTEN:
        return list(words[1:2])
    try:
        return WRITTEN[name](words)
    except (ValueError, IndexError, StopIteration):  # the server refuses it
        return []
