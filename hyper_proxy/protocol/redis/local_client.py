"""CLIENT subcommands and ACL WHOAMI: what a session knows about itself."""

from __future__ import annotations

import time

from . import encode, wording
from .handshake import checked_name, is_printable
from .session_view import Handler, SessionView

# CLIENT SETINFO: the words it knows and the session's fields.
_INFO_FIELDS = {b"lib-name": "lib_name", b"lib-ver": "lib_ver"}

# Client-side caching needs the servers to know which client read what; on shared connections they cannot tell.
TRACKING_OFF = "ERR client-side caching is not offered by this proxy: tracking stays off"


_BUFFERS = ("qbuf", "qbuf-free", "argv-mem", "multi-mem", "rbs", "rbp", "obl", "oll", "omem", "tot-mem")


def _text(data: bytes) -> str:
    return data.decode("ascii", "backslashreplace")


def describe(session: SessionView) -> str:
    """One line of words, as CLIENT INFO gives it.

    Clients want the sizes of buffers there as numbers, redis-py fails without; the proxy has none of its own kind.
    """
    fields = {
        "id": session.id,
        "addr": session.address,
        "laddr": session.laddr,
        "name": _text(session.name),
        "age": int(time.monotonic() - session.created),
        "idle": 0,
        "flags": "N",
        "db": session.db,
        "sub": 0,
        "psub": 0,
        "ssub": 0,
        "multi": -1,
        **dict.fromkeys(_BUFFERS, 0),
        "events": "r",
        "cmd": "client|info",
        "user": session.user,
        "redir": -1,
        "resp": session.resp,
        "lib-name": _text(session.lib_name),
        "lib-ver": _text(session.lib_ver),
    }
    return " ".join(f"{name}={value}" for name, value in fields.items()) + "\n"


def info(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT INFO."""
    return encode.verbatim(describe(session), session.resp)


def client_id(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT ID."""
    return encode.integer(session.id)


def getname(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT GETNAME."""
    return encode.bulk(session.name) if session.name else encode.null(session.resp)


def setname(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT SETNAME; the empty name takes it away. Raises ErrorReply."""
    session.name = checked_name(argv[2])
    return encode.OK


def setinfo(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT SETINFO LIB-NAME|LIB-VER; redis has it since 7.2, clients of that age send it to every server."""
    field = _INFO_FIELDS.get(argv[2].lower())
    if field is None:
        return encode.error(wording.unrecognized_option(argv[2]))
    if not is_printable(argv[3]):
        return encode.error(wording.bad_info_value(argv[2]))
    setattr(session, field, argv[3])
    return encode.OK


def on_off(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT NO-EVICT, NO-TOUCH: the proxy evicts no client and has no ages of keys to leave alone."""
    return encode.OK if argv[2].lower() in (b"on", b"off") else encode.error(wording.SYNTAX)


def tracking(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT TRACKING: it can be switched off."""
    choice = argv[2].lower()
    if choice == b"on":
        return encode.error(TRACKING_OFF)
    return encode.OK if choice == b"off" else encode.error(wording.SYNTAX)


def trackinginfo(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT TRACKINGINFO."""
    flags = encode.unordered([encode.bulk("off")], session.resp)
    pairs = [
        (encode.bulk("flags"), flags),
        (encode.bulk("redirect"), encode.integer(-1)),
        (encode.bulk("prefixes"), encode.EMPTY_ARRAY),
    ]
    return encode.mapping(pairs, session.resp)


def getredir(session: SessionView, argv: list[bytes]) -> bytes:
    """CLIENT GETREDIR: nothing is redirected."""
    return encode.integer(-1)


def whoami(session: SessionView, argv: list[bytes]) -> bytes:
    """ACL WHOAMI."""
    return encode.bulk(session.user)


HANDLERS: dict[bytes, Handler] = {
    b"acl|whoami": whoami,
    b"client|getname": getname,
    b"client|getredir": getredir,
    b"client|id": client_id,
    b"client|info": info,
    b"client|no-evict": on_off,
    b"client|no-touch": on_off,
    b"client|setinfo": setinfo,
    b"client|setname": setname,
    b"client|tracking": tracking,
    b"client|trackinginfo": trackinginfo,
}
