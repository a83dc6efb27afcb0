"""A toy protocol, as a plug-in: lines in, lines out.

    get KEY [KEY ...]      one line for each key: "=VALUE", or "-" where there is none
    set KEY VALUE          "ok"; the value may contain spaces
    sum KEY [KEY ...]      "=NUMBER": the numbers of all keys together, absent ones counted as 0
    quit                   "bye", and the connection ends
    errors                 "!KIND TEXT"

    [proxy]
    plugins = ["examples/plugins/toy.py"]

    [[instance]]
    protocol = "toy"
"""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy import plugin


@plugin.protocol("toy")
class Toy(plugin.Protocol):
    """The six functions."""

    def unserialize(self, buffer: bytes, start: int) -> tuple[plugin.Request, int] | None:
        """A line is a request."""
        end = buffer.find(b"\n", start)
        if end < 0:
            return None
        command, _, rest = buffer[start:end].rstrip(b"\r").partition(b" ")
        if command == b"set":
            key, _, value = rest.partition(b" ")
            request = plugin.Request("set", (key,), plugin.IDEMPOTENT, values=(value,))
        else:
            name = command.decode("ascii", "replace")
            request = plugin.Request(name, tuple(rest.split()), content=name, close=name == "quit")
        return request, end + 1

    def split(self, request: plugin.Request) -> Sequence[tuple[str, bytes, bytes]]:
        """One part for each key; they are asked side by side."""
        if request.command not in ("get", "set", "sum", "quit"):
            raise plugin.ClientError(f"there is no command '{request.command}': get, set, sum and quit are")
        if request.command != "quit" and not all(request.keys or (b"",)):
            raise plugin.ClientError(f"{request.command} takes a key")
        value = request.values[0] if request.values else b""
        return [(request.command, key, value) for key in request.keys]

    def map(self, storage: plugin.KeyValue, part: tuple[str, bytes, bytes]) -> bytes | None:
        """What the storage says to one part."""
        command, key, value = part
        if command == "set":
            storage.store(key, value)
            return None
        item = storage.read_many([key])[0]
        return item.value if item else None

    def reduce(self, request: plugin.Request, results: Sequence[bytes | None]) -> list[bytes]:
        """The lines of the answer."""
        if request.command == "set":
            return [b"ok"]
        if request.command == "quit":
            return [b"bye"]
        if request.command == "sum":
            return [b"=%d" % sum(_number(value) for value in results if value is not None)]
        return [b"-" if value is None else b"=" + value for value in results]

    def serialize(self, reply: list[bytes]) -> bytes:
        """Each line with its end."""
        return b"".join(line + b"\n" for line in reply)

    def refuse(self, error: plugin.HyperProxyError) -> bytes:
        """An error is a line as well."""
        return f"!{error.kind} {error}\n".encode()


def _number(value: bytes) -> int:
    try:
        return int(value)
    except ValueError:
        raise plugin.ClientError("a value is no number") from None
