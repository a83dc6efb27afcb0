"""HELLO, AUTH and names: what a client says about itself, read and checked with redis' own words."""

from __future__ import annotations

from dataclasses import dataclass

from . import encode, wording
from .commands import VERSION
from .session_view import SessionView

DEFAULT_USER = "default"


@dataclass(frozen=True, slots=True)
class Hello:
    """What HELLO asks for. resp 0: the version stays as it is; auth and name None: not given."""

    resp: int
    auth: tuple[str, bytes] | None
    name: bytes | None


def parse_hello(argv: list[bytes]) -> Hello:
    """`HELLO [2|3 [AUTH user password] [SETNAME name]]`; raises ErrorReply."""
    if len(argv) < 2:
        return Hello(0, None, None)
    if not _is_integer(argv[1]):
        raise wording.ErrorReply(wording.PROTO_NOT_AN_INTEGER)
    resp = int(argv[1])
    if resp not in (encode.RESP2, encode.RESP3):
        raise wording.ErrorReply(wording.NO_PROTO)
    auth: tuple[str, bytes] | None = None
    name: bytes | None = None
    at = 2
    while at < len(argv):
        option = argv[at].lower()
        if option == b"auth" and at + 2 < len(argv):
            auth = (_user(argv[at + 1]), argv[at + 2])
            at += 3
        elif option == b"setname" and at + 1 < len(argv):
            name = checked_name(argv[at + 1])
            at += 2
        else:
            raise wording.ErrorReply(wording.bad_hello_option(argv[at]))
    return Hello(resp, auth, name)


def parse_auth(argv: list[bytes]) -> tuple[str, bytes]:
    """`AUTH [user] password` as (user, password); raises ErrorReply."""
    if len(argv) > 3:
        raise wording.ErrorReply(wording.SYNTAX)
    return (_user(argv[1]), argv[2]) if len(argv) == 3 else (DEFAULT_USER, argv[1])


def _user(name: bytes) -> str:
    """A name that is no text is nobody's, and stays another one than any that is."""
    return name.decode("utf-8", "backslashreplace")


def checked_name(name: bytes) -> bytes:
    """A name that a client gives itself: printable and without spaces, since CLIENT INFO is one line of words."""
    if not is_printable(name):
        raise wording.ErrorReply(wording.BAD_CLIENT_NAME)
    return name


def is_printable(text: bytes) -> bool:
    """Only the characters from ! to ~ ? The empty text is."""
    return all(0x21 <= byte <= 0x7E for byte in text)


def _is_integer(text: bytes) -> bool:
    return text.removeprefix(b"-").isdigit() and len(text) < 20


def hello_reply(session: SessionView) -> bytes:
    """The answer to HELLO, in the version that the session has by now."""
    facts = {
        "server": "redis",
        "version": VERSION,
        "proto": session.resp,
        "id": session.id,
        "mode": "standalone",
        "role": "master",
        "modules": [],
    }
    return encode.value(facts, session.resp)


