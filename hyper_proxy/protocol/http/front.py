"""HTTP as a protocol of six functions (hyper_proxy/protocol/functions), as one of a plug-in is, and served as these."""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.protocol.functions.protocol import Client, Partly, Protocol
from hyper_proxy.protocol.functions.protocol import Request as Errand
from hyper_proxy.protocol.http import responses
from hyper_proxy.protocol.http.refusal import Refusal, refusal_of
from hyper_proxy.protocol.http.requests import Reader
from hyper_proxy.protocol.http.responses import Response
from hyper_proxy.protocol.http.routes import Ask, errand_of
from hyper_proxy.storage.keyvalue import KeyValue


class Http(Protocol):
    """One for each client, for which `opened` makes it: llhttp has in mind what it was fed, and how a response looks
    depends on the request. The first one serves nobody.
    """

    client: Client

    def __init__(self) -> None:
        self.reader = Reader()
        self.closing = True  # behind the next response

    def opened(self, client: Client) -> Http:
        """A client is connected."""
        one = Http()
        one.client = client
        return one

    def unserialize(self, buffer: bytes, start: int) -> tuple[Errand, int] | Partly:
        """All bytes up to the end of a request are taken: llhttp does not want them twice."""
        reader, instance = self.reader, self.client.instance
        self.closing = True  # where the next request begins is not known until this one is whole
        end = reader.feed(buffer, start, instance.limits)
        if not reader.whole:
            return Partly(end, responses.CONTINUE if reader.waits() else b"", reader.left)
        errand = errand_of(instance, reader.request)
        self.closing = errand.close
        return errand, end

    def split(self, request: Errand) -> Sequence[Ask]:
        """One part: what several keys are asked for, the storage splits by their places."""
        if isinstance(request.content, Refusal):
            raise request.content
        return [request.content]

    def map(self, storage: KeyValue, part: Ask) -> Response:
        """Ask the storage."""
        return part(storage)

    def reduce(self, request: Errand, results: Sequence[Response]) -> Response:
        """The one that there is."""
        return results[0]

    def serialize(self, reply: Response) -> bytes:
        """As the request at hand wants it: without a body, packed, the last one."""
        answer = responses.encode(reply, self.reader.request, close=self.closing)
        self.reader.forget()
        return answer

    def refuse(self, error: HyperProxyError) -> bytes:
        """An error is an object of JSON."""
        return self.serialize(responses.of_refusal(refusal_of(error)))

    def sizes(self, request: Errand, reply: bytes) -> Sequence[int] | None:
        """Of a value that is read as it is, and was not packed."""
        head, _, body = reply.partition(b"\r\n\r\n")
        plain = request.command == "GET" and head.startswith(b"HTTP/1.1 200 ") and b"\r\nContent-Encoding: " not in head
        return [len(body)] if plain else None
