"""Replies of the memcache front that no server has given: memcached's own words (1.6.18) wherever it has them."""

from __future__ import annotations

END = b"END\r\n"
ERROR = b"ERROR\r\n"
OK = b"OK\r\n"
MN = b"MN\r\n"
BAD_FORMAT = b"CLIENT_ERROR bad command line format\r\n"
BAD_LINE = b"CLIENT_ERROR bad command line\r\n"
BAD_SLAB = b"CLIENT_ERROR Illegal slab id\r\n"
BAD_KEY = b"CLIENT_ERROR error decoding key\r\n"
BAD_CHUNK = b"CLIENT_ERROR bad data chunk\r\n"
BAD_EXPTIME = b"CLIENT_ERROR invalid exptime argument\r\n"
BAD_DELTA = b"CLIENT_ERROR invalid numeric delta argument\r\n"
BAD_DELETE = b"CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
BAD_FLAG = b"CLIENT_ERROR invalid flag\r\n"
DUPLICATE_FLAG = b"CLIENT_ERROR duplicate flag\r\n"
BAD_OR_DUPLICATE_FLAG = b"CLIENT_ERROR invalid or duplicate flag\r\n"
MANY_FLAGS_READING = b"CLIENT_ERROR options flags are too long\r\n"
MANY_FLAGS = b"CLIENT_ERROR options flags too long\r\n"
TOO_LARGE = b"SERVER_ERROR object too large for cache\r\n"
NO_FLUSH = b"CLIENT_ERROR flush_all not allowed\r\n"
LINE_TOO_LONG = b"CLIENT_ERROR line too long\r\n"
TOO_MANY_KEYS = b"CLIENT_ERROR too many keys\r\n"


def partly(error: bytes, lost: int, keys: int) -> bytes:
    """An error of a request of several keys, with the number of keys that it affects."""
    return b"%b (%d of %d keys)\r\n" % (error.removesuffix(b"\r\n"), lost, keys)


def text_of(reply: bytes) -> str:
    """What an error reply says, for a ClientError that becomes this reply."""
    return reply.removeprefix(b"CLIENT_ERROR ").removesuffix(b"\r\n").decode()


ONE_LEVEL = "it needs one level of memcached servers as the storage"


def refused(name: bytes, why: str) -> bytes:
    """For a command that the proxy knows and does not serve."""
    return b"CLIENT_ERROR %b is not served: %b\r\n" % (name, why.encode())


NO_RESIZE = refused(b"cache_memlimit", "the instance's `allow` does not name it")


def server_error(text: object) -> bytes:
    """A failure of the proxy or of a server behind it; always one line."""
    return b"SERVER_ERROR %b\r\n" % " ".join(str(text).split()).encode()


def client_error(text: object) -> bytes:
    """A request that cannot be served."""
    return b"CLIENT_ERROR %b\r\n" % " ".join(str(text).split()).encode()
