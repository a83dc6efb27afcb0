"""Error texts of the redis front: redis' own words wherever redis has words for it (compared with 7.0.15 by the tests).

Clients match on these texts: on "unknown command" to fall back to an older protocol, on "NOPROTO", on "CROSSSLOT". Each
function gives the text of an error reply without the leading dash; encode.error makes the reply.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy.common.errors import ClientError

from . import encode
from .command import Command

# An unknown command is quoted up to here, and so are its arguments together; as in redis.
QUOTE_BYTES = 128


MAX_DIGITS = 18  # of a number that is read: more do not fit 64 bits, and Python's int refuses very many


def number(word: bytes) -> int | None:
    """The number that a word is, if it is one without a sign and not too long."""
    return int(word) if word.isdigit() and len(word) <= MAX_DIGITS else None


class ErrorReply(ClientError):
    """A client's fault whose text is the whole error as redis words it, code included; `reply` is the encoded reply."""

    def __init__(self, text: bytes) -> None:
        super().__init__(text.decode("utf-8", "replace"))
        self.reply = encode.error(text)


class Misplaced(ErrorReply):
    """MULTI or WATCH inside a transaction: it is only said; the transaction goes on, as in redis."""


SYNTAX = b"ERR syntax error"
NOT_AN_INTEGER = b"ERR value is not an integer or out of range"
DB_RANGE = b"ERR DB index is out of range"
CROSS_SHARD = b"CROSSSLOT Keys in request don't hash to the same slot"
NO_AUTH = b"NOAUTH Authentication required."
NO_PROTO = b"NOPROTO unsupported protocol version"
PROTO_NOT_AN_INTEGER = b"ERR Protocol version is not an integer or out of range"
HELLO_NO_AUTH = (
    b"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> "
    b"option can be used to authenticate the client and select the RESP protocol version at the same time"
)
WRONG_PASS = b"WRONGPASS invalid username-password pair or user is disabled."
NO_PASSWORD_SET = (
    b"ERR AUTH <password> called without any password configured for the default user. "
    b"Are you sure your configuration is correct?"
)
BAD_CLIENT_NAME = b"ERR Client names cannot contain spaces, newlines or special characters."
OUTSIDE_KEYS = (
    b"CROSSSLOT SORT with a * in BY or GET reads keys that the request does not name; they may lie on other shards"
)
NESTED_MULTI = b"ERR MULTI calls can not be nested"
EXEC_WITHOUT_MULTI = b"ERR EXEC without MULTI"
DISCARD_WITHOUT_MULTI = b"ERR DISCARD without MULTI"
WATCH_INSIDE_MULTI = b"ERR WATCH inside MULTI is not allowed"
NOT_IN_MULTI = b"ERR Command not allowed inside a transaction"
ABORTED = b"EXECABORT Transaction discarded because of: "
EXEC_ABORT = b"EXECABORT Transaction discarded because of previous errors."
BAD_CURSOR = b"ERR invalid cursor"
OTHERS_TOO = b"ERR FLUSHALL would also empty databases that are not this instance's; use FLUSHDB"
CLUSTER_DISABLED = b"ERR This instance has cluster support disabled"


def _quoted(text: bytes, limit: int) -> bytes:
    """The text as redis prints it: up to a NUL byte, and up to `limit` bytes."""
    return text.split(b"\0", 1)[0][:limit]


def unknown_command(argv: Sequence[bytes]) -> bytes:
    """For a verb that the table does not have."""
    quoted = b""
    for word in argv[1:]:
        if len(quoted) >= QUOTE_BYTES:
            break
        quoted += b"'%b' " % _quoted(word, QUOTE_BYTES - len(quoted))
    return b"ERR unknown command '%b', with args beginning with: %b" % (_quoted(argv[0], QUOTE_BYTES), quoted)


def unknown_subcommand(argv: Sequence[bytes]) -> bytes:
    """For a known container command with a second word that it does not have."""
    return b"ERR unknown subcommand '%b'. Try %b HELP." % (_quoted(argv[1], QUOTE_BYTES), argv[0].upper())


def wrong_arity(command: Command) -> bytes:
    """For a wrong number of words; a subcommand is named `client|setname`."""
    return b"ERR wrong number of arguments for '%b' command" % command.name


def refused(command: Command) -> bytes:
    """For a command that the proxy does not serve: says why."""
    return b"ERR " + command.why.encode()


def unserved(name: bytes, storage: str, place: str) -> str:
    """For a command that this storage does not serve in this place: see KeyValue."""
    return f"ERR '{name.decode()}' is not served by an instance whose storage is {storage}{place}"


def long_key(limit: int) -> bytes:
    """For a key of more bytes than an instance takes."""
    return b"ERR a key is longer than limits.max_key_bytes (%d)" % limit


def permission(command: Command) -> str:
    """The name under which an instance's `allow` grants the command: FLUSHALL, or SCRIPT FLUSH for a subcommand."""
    return command.name.decode().replace("|", " ").upper()


def only_subscribing(command: Command) -> bytes:
    """For a command that a RESP2 client may not send while it listens to channels."""
    allowed = b"only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
    return b"ERR Can't execute '%b': %b" % (command.name, allowed)


def unrecognized_option(word: bytes) -> bytes:
    """For an option of CLIENT SETINFO that is unknown."""
    return b"ERR Unrecognized option '%b'" % _quoted(word, QUOTE_BYTES)


def bad_info_value(word: bytes) -> bytes:
    """For a value of CLIENT SETINFO that would not fit into one line of words."""
    return b"ERR %b cannot contain spaces, newlines or special characters." % _quoted(word, QUOTE_BYTES)


def bad_hello_option(word: bytes) -> bytes:
    """For an option of HELLO that is unknown or lacks its words."""
    return b"ERR Syntax error in HELLO option '%b'" % _quoted(word, QUOTE_BYTES)
