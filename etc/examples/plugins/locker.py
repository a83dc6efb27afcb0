"""A protocol that knows its clients, as a plug-in: each has a name, and sees the keys under that name alone.

    name NAME              "ok": from now on this is the client's name; one without /
    put KEY SIZE           "go on", then the client sends SIZE bytes and reads "ok"
    get KEY                SIZE, a line's end, and the value; "-" where there is none
    errors                 "!KIND TEXT"

    [proxy]
    plugins = ["examples/plugins/locker.py"]

    [[instance]]
    protocol = "locker"
"""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy import plugin


class Unknown(plugin.ClientError):
    """Stands in the access log as error=nameless, and not as error=client."""

    word = "nameless"


@plugin.protocol("locker")
class Locker(plugin.Protocol):
    """The object that is made once serves nobody: `opened` makes another for each client."""

    def __init__(self) -> None:
        self.name = b""
        self.key = b""  # of a value that is coming
        self.lacks = 0  # bytes of it
        self.pieces: list[bytes] = []

    def opened(self, client: plugin.Client) -> Locker:
        """A client is connected."""
        return Locker()

    def unserialize(self, buffer: bytes, start: int) -> tuple[plugin.Request, int] | plugin.Partly | None:
        """A line is a request, or the head of a value; that is taken in the pieces that it comes in."""
        if self.lacks:
            return self._take(buffer, start)
        end = buffer.find(b"\n", start)
        if end < 0:
            return None
        words = buffer[start:end].split()
        command = words[0].decode("ascii", "replace") if words else ""
        if command == "put":
            if len(words) != 3 or not words[2].isdigit() or len(words[2]) > 18 or int(words[2]) == 0:
                raise plugin.ClientError("where does the value end? It is: put KEY SIZE")
            self.key, self.lacks = words[1], int(words[2])
            return plugin.Partly(end + 1, b"go on\n", self.lacks)
        key = words[1] if len(words) == 2 else b""
        if command == "get" and key:
            return plugin.Request("get", (self._own(key),)), end + 1
        return plugin.Request(command, klass=plugin.ADMIN, content=key), end + 1

    def _take(self, buffer: bytes, start: int) -> tuple[plugin.Request, int] | plugin.Partly:
        piece = buffer[start : start + self.lacks]
        end = start + len(piece)
        self.pieces.append(piece)
        self.lacks -= len(piece)
        if self.lacks:
            return plugin.Partly(end, lacks=self.lacks)
        value, self.pieces = b"".join(self.pieces), []
        return plugin.Request("put", (self._own(self.key),), plugin.IDEMPOTENT, values=(value,)), end

    def _own(self, key: bytes) -> bytes:
        return self.name + b"/" + key

    def split(self, request: plugin.Request) -> Sequence[plugin.Request]:
        """One part, the request itself."""
        if request.command not in ("name", "put", "get") or not (request.keys or request.content):
            raise plugin.ClientError("possible are: name NAME, put KEY SIZE, get KEY")
        if request.command == "name" and b"/" in request.content:  # "a" would see the keys of "a/b"
            raise plugin.ClientError("a name is without /")
        if request.keys and not self.name:
            raise Unknown("who are you? Say: name NAME")
        return [request]

    def map(self, storage: plugin.KeyValue, part: plugin.Request) -> bytes | None:
        """What the storage says."""
        if part.command == "get":
            item = storage.read_many(part.keys)[0]
            return item.value if item else None
        if part.command == "put":
            storage.store(part.keys[0], part.values[0])
        return b""

    def reduce(self, request: plugin.Request, results: Sequence[bytes | None]) -> bytes:
        """The answer; the name is known from here on."""
        if request.command == "name":
            self.name = request.content
        if request.command != "get":
            return b"ok"
        value = results[0]
        return b"-" if value is None else b"%d\n%b" % (len(value), value)

    def serialize(self, reply: bytes) -> bytes:
        """With its end."""
        return reply + b"\n"

    def refuse(self, error: plugin.HyperProxyError) -> bytes:
        """An error is a line."""
        return f"!{error.kind} {error}\n".encode()

    def sizes(self, request: plugin.Request, reply: bytes) -> list[int] | None:
        """How large is what was read? For the list of large keys."""
        return [int(reply.partition(b"\n")[0])] if request.command == "get" and reply[:1].isdigit() else None
