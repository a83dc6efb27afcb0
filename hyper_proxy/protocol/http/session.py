"""One HTTP client: requests in, responses out, in order, on a connection that stays open."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.protocol.http import responses
from hyper_proxy.protocol.http.refusal import Refusal, refusal_of
from hyper_proxy.protocol.http.requests import Reader, Request
from hyper_proxy.protocol.http.routes import answer, klass_of
from hyper_proxy.stats.plugin_faults import report

if TYPE_CHECKING:
    from hyper_proxy.entry.client import Client
    from hyper_proxy.front import Front


class HttpSession:
    """serve() is the body of the connection's greenlet. A request sees one snapshot of the configuration."""

    def __init__(self, front: Front, client: Client) -> None:
        self.front = front
        self.client = client
        self.reader = Reader(front.snapshot.instance.limits)
        self.closing = False

    def serve(self) -> None:
        """Read, answer, until the client or the session ends."""
        while not self.closing:
            data = self.client.read()
            if not data:
                return
            self.feed(data)

    def feed(self, data: bytes) -> None:
        """Answer every whole request of these bytes."""
        self.reader.limits = self.front.snapshot.instance.limits
        fault: Refusal | None = None
        try:
            done = self.reader.feed(data)
        except Refusal as refusal:
            done, fault = self.reader.done, refusal
        for request in done:
            if self.closing:
                return
            self._answer(request)
        if fault is not None and not self.closing:
            self.front.stats.error(fault.kind)
            self._send(responses.of_refusal(fault), self.reader.request, close=True)
        elif self.reader.wants_continue:
            self.reader.wants_continue = False
            self.client.write(responses.CONTINUE)

    def _answer(self, request: Request) -> None:
        began = monotonic()
        close = not request.keep_alive
        try:
            response = answer(self.front.snapshot, request)
        except HyperProxyError as error:
            self.front.stats.error(error.kind)
            report(error, self.front.snapshot.instance.name)
            refusal = refusal_of(error)
            close = close or refusal.fatal
            response = responses.of_refusal(refusal)
        self.front.stats.note(klass_of(request), 1, int((monotonic() - began) * 1e6))
        self._send(response, request, close=close)

    def _send(self, response: responses.Response, request: Request, *, close: bool) -> None:
        self.closing = close
        self.client.write(responses.encode(response, request, close=close))
