"""The commands that the proxy answers itself, by the name of their row: LOCAL[command.name](session, argv) -> reply.

A handler may raise ErrorReply, whose `reply` is the answer. The number of words has been checked by the row's arity.
"""

from __future__ import annotations

import time

from hyper_proxy import __version__

from . import encode, local_client, local_command, local_config, local_docs, local_info, wording
from .commands import COMMANDS, VERSION
from .session_view import Handler, SessionView


def ping(session: SessionView, argv: list[bytes]) -> bytes:
    """PING [message]."""
    if len(argv) == 1:
        return encode.PONG
    return encode.bulk(argv[1]) if len(argv) == 2 else encode.error(wording.wrong_arity(COMMANDS[b"ping"]))


def echo(session: SessionView, argv: list[bytes]) -> bytes:
    """ECHO message."""
    return encode.bulk(argv[1])


def now(session: SessionView, argv: list[bytes]) -> bytes:
    """TIME: the proxy's clock, seconds since 1970 and microseconds."""
    seconds, microseconds = divmod(time.time_ns() // 1000, 1_000_000)
    return encode.array([encode.bulk(str(seconds)), encode.bulk(str(microseconds))])


def role(session: SessionView, argv: list[bytes]) -> bytes:
    """ROLE: the proxy takes writes, and no replica follows it."""
    return encode.array([encode.bulk("master"), encode.integer(0), encode.EMPTY_ARRAY])


def lolwut(session: SessionView, argv: list[bytes]) -> bytes:
    """LOLWUT [VERSION n [word ...]]: who is there, without the art."""
    shards = len(session.instance.levels[-1].servers)
    text = f"hyper_proxy {__version__}: one name, {shards} shards\nRedis ver. {VERSION}\n"
    return encode.verbatim(text, session.resp)


def no_cluster(session: SessionView, argv: list[bytes]) -> bytes:
    """READONLY, READWRITE, ASKING: what a server without cluster mode says."""
    return encode.error(wording.CLUSTER_DISABLED)


def no_modules(session: SessionView, argv: list[bytes]) -> bytes:
    """MODULE LIST: the proxy has none, and does not serve the commands of the servers' modules."""
    return encode.EMPTY_ARRAY


def debug(session: SessionView, argv: list[bytes]) -> bytes:
    """DEBUG ERROR message, by which clients test how they take an error; the rest of DEBUG is for servers."""
    if len(argv) == 3 and argv[1].lower() == b"error":
        return encode.error(argv[2])
    return encode.error(b"ERR 'debug' is not served by this proxy, but for DEBUG ERROR: it acts on one server")


LOCAL: dict[bytes, Handler] = {
    b"asking": no_cluster,
    b"debug": debug,
    b"echo": echo,
    b"lolwut": lolwut,
    b"module|list": no_modules,
    b"ping": ping,
    b"readonly": no_cluster,
    b"readwrite": no_cluster,
    b"role": role,
    b"time": now,
    **local_client.HANDLERS,
    **local_command.HANDLERS,
    **local_config.HANDLERS,
    **local_docs.HANDLERS,
    **local_info.HANDLERS,
}
