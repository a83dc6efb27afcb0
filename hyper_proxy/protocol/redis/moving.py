"""The keys of a request on its way to a server, for storages whose keys move (hyper_proxy/conn_pool/moving)."""

from __future__ import annotations

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import commands, wording
from hyper_proxy.protocol.redis.framing import Framer, words

MOST = 1 << 31  # the request was measured when it came
REFUSED = frozenset({b"move", b"select"})
"""What names another database than that of its connection: its keys would have to be moved there as well."""


def request_keys(request: bytes) -> list[bytes]:
    """Raises ClientError for what can't be served while keys move."""
    framer = Framer(MOST, MOST, MOST)
    end = framer.scan(request, 0)
    argv = words(request, framer.args, end)
    try:
        row = commands.resolve(argv)
    except wording.ErrorReply:  # the server words it
        return []
    if row.name in REFUSED or (row.name == b"copy" and b"db" in [word.lower() for word in argv[3:]]):
        name = row.name.decode().upper()
        raise ClientError(f"{name} with another database is not served while keys move from server to server")
    if row.outside is not None and row.outside(argv):
        raise ClientError("SORT with a * in BY or GET reads keys that it does not name: they may not have moved yet")
    return [argv[position] for position in commands.keys_of(row, argv)]
