"""Bytes to requests: httptools (llhttp) finds the parts, the limits of the instance bound them."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote_to_bytes

import httptools

from hyper_proxy.config.model import Limits
from hyper_proxy.protocol.http.refusal import Refusal

MAX_HEADERS = 100
EMPTY_LINE = 3  # bytes of it, with the end of the line before
MOST_DIGITS = 20  # of Content-Length: as many as 64 bits need
SPACE = " \t"
MOST_PIECES = 256  # that are parsed before others have their turn
GZIP = 16 + zlib.MAX_WBITS
# The target may be a whole address, as proxies are asked; whose it is does not matter here (RFC 9112, 3.2.2).
ORIGIN = re.compile(rb"https?://[^/?]+", re.IGNORECASE)
HOST = re.compile(r"[\w.~!$&'()*+,;=%:\[\]-]*", re.ASCII)  # RFC 3986, 3.2.2, and a port
ENCODINGS = {"gzip": GZIP, "x-gzip": GZIP, "deflate": zlib.MAX_WBITS}


@dataclass(slots=True)
class Request:
    """One request. `path` is decoded, without the query; header names are in lower case. repeated: a parameter that
    stands in the query more than once, "" for none."""

    method: str = ""
    path: bytes = b""
    query: dict[str, str] = field(default_factory=dict)
    repeated: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_alive: bool = True

    def header(self, name: str) -> str:
        """The value of a header, "" when it is not there."""
        return self.headers.get(name, "")


class Reader:
    """The requests of one connection, one by one. Its methods on_... are llhttp's callbacks.

    request  the one at hand, as far as it is known; whole: it is all there, and nothing behind it has been parsed
    left     bytes of its body that are still to come; 0 when it has none, or one of chunks

    llhttp does not stop behind a request. So it never gets more than up to the next place where one could end: so many
    bytes behind the head as that has said, else an empty line, which ends every head and every body of chunks.
    """

    def __init__(self) -> None:
        self.limits: Limits
        self.parser = httptools.HttpRequestParser(self)
        self.request = Request()
        self.whole = True
        self.url = b""
        self.head_size = 0  # URL, headers and trailers
        self.size = 0  # of the body
        self.left = 0
        self.silent = 0  # bytes taken in a row in which the parser found nothing to tell: it may be keeping them
        self.in_body = False
        self.body: bytes | bytearray = b""
        self.fault: Refusal | None = None
        self.wants_continue = False

    def feed(self, data: bytes, start: int, limits: Limits) -> int:
        """Take these bytes, up to the end of the request at most; the index behind what is taken. Raises Refusal."""
        self.limits = limits
        size = len(data)
        astride = start if self.whole else start + EMPTY_LINE - 1  # an empty line may have begun with bytes before
        self.whole = False
        self.silent += size - start
        for _ in range(MOST_PIECES):
            end = self._next_end(data, start, astride)
            self._parse(data if end == size and not start else memoryview(data)[start:end])
            if self.silent > limits.max_line_bytes + size:  # a header, or a line of chunks, without end
                raise self._head_too_large()
            start = end
            if self.whole or start == size:
                break
        return start

    def waits(self) -> bool:
        """Does the client wait for leave to send the body? Only asked once of a request."""
        waits, self.wants_continue = self.wants_continue, False
        return waits

    def forget(self) -> None:
        """The request at hand is answered: its head may be large, and the client idle from now on."""
        self.request = Request()
        self.url = b""

    def _next_end(self, data: bytes, start: int, astride: int) -> int:
        """Where the request may end next, or the bytes do."""
        size = len(data)
        if self.left:
            return min(start + self.left, size)
        if start < astride:
            return start + 1
        found = data.find(b"\n\r\n", max(start - EMPTY_LINE + 1, 0))
        return size if found < 0 else found + EMPTY_LINE

    def _parse(self, piece: bytes | memoryview) -> None:
        """A request that asks for another protocol is answered in this one (RFC 9110, 7.8): clients that know HTTP/2
        ask at every first request. For llhttp what comes behind is no HTTP any more, for us it is."""
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade:
            self._decline(self.request)
            self.parser = httptools.HttpRequestParser(self)
        except httptools.HttpParserCallbackError as error:
            if self.fault is None:
                raise
            raise self.fault from error
        except httptools.HttpParserError as error:
            raise Refusal(400, "malformed", f"this is not HTTP: {error}") from None

    def _decline(self, request: Request) -> None:
        """The parser has left out the body of a request that asks for another protocol, if it has one."""
        body = request.header("content-length") not in ("", "0") or request.header("transfer-encoding")
        if body or request.method == "CONNECT":
            raise Refusal(501, "no_upgrade", "no other protocol is served here")

    # --- callbacks

    def on_message_begin(self) -> None:
        if self.whole:  # where the one before has ended is not seen in the way that `feed` looks for it
            self._refuse(Refusal(400, "malformed", "a request ends in an odd way"))
        self.request = Request()
        self.url = b""
        self.head_size = self.size = self.left = self.silent = 0
        self.in_body = self.wants_continue = False
        self.body = b""

    def on_url(self, url: bytes) -> None:
        self.url += url
        self.silent = 0
        self.head_size += len(url)
        if self.head_size > self.limits.max_line_bytes:
            self._refuse(Refusal(414, "url_too_long", self._says("max_line_bytes")))

    def on_header(self, name: bytes, value: bytes) -> None:
        self.silent = 0
        self.head_size += len(name) + len(value) + 4
        if self.head_size > self.limits.max_line_bytes:
            self._refuse(self._head_too_large())
        if self.in_body:  # a trailer: none means anything here, and it must not pass for a header (RFC 9110, 6.5.1)
            return
        headers = self.request.headers
        text = name.decode("latin-1").lower()
        here = value.decode("latin-1").strip(SPACE)
        if text == "host" and text in headers:
            self._refuse(Refusal(400, "bad_host", "there are two headers Host"))
        headers[text] = f"{headers[text]}, {here}" if text in headers else here
        if len(headers) > MAX_HEADERS:
            self._refuse(Refusal(431, "head_too_large", f"there are more than {MAX_HEADERS} headers"))

    def on_headers_complete(self) -> None:
        request = self.request
        request.method = self.parser.get_method().decode()
        self.silent = 0
        self.in_body = True
        headers = request.headers
        length = headers.get("content-length", "")
        if length:
            if len(length) > MOST_DIGITS:  # the parser counts zeros without end
                self._refuse(Refusal(400, "malformed", f"Content-Length has more than {MOST_DIGITS} digits"))
            self._grow_body(int(length))
            self.size = 0
            self.left = int(length)
        self._check_host()
        coding = headers.get("transfer-encoding", "").lower()
        if coding not in ("", "chunked"):  # RFC 9112, 6.1; a packed body is named by Content-Encoding
            self._refuse(Refusal(501, "unknown_encoding", f"'{coding}' is not known as Transfer-Encoding; chunked is"))
        continues = self.parser.get_http_version() != "1.0"  # RFC 9110, 10.1.1
        self.wants_continue = continues and headers.get("expect", "").lower() == "100-continue"

    def _check_host(self) -> None:
        """RFC 9112, 3.2: it must be there, though it may be empty."""
        host = self.request.headers.get("host")
        if host is None and self.parser.get_http_version() != "1.0":
            self._refuse(Refusal(400, "bad_host", "a request of HTTP/1.1 has a header Host"))
        if host and not HOST.fullmatch(host):
            self._refuse(Refusal(400, "bad_host", "the header Host is no name or address with or without a port"))

    def on_body(self, body: bytes) -> None:
        if not self.body:
            self.body = body  # most come in one piece
        else:
            if isinstance(self.body, bytes):
                self.body = bytearray(self.body)  # chunks may have a byte each: an object for each would be fifty
            self.body += body
        self.left = max(0, self.left - len(body))
        self._grow_body(len(body))

    def on_message_complete(self) -> None:
        request = self.request
        origin = ORIGIN.match(self.url)
        path, _, query = self.url[origin.end() if origin else 0 :].partition(b"?")
        request.path = unquote_to_bytes(path)
        if query:
            for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
                if name in request.query:
                    request.repeated = name
                request.query[name] = value
        request.keep_alive = self.parser.should_keep_alive()
        try:
            if self.body or "content-encoding" in request.headers:
                request.body = self._decoded(bytes(self.body), request.header("content-encoding").lower())
        except Refusal as fault:
            self._refuse(fault)
        self.body = b""
        self.whole = True

    def _decoded(self, body: bytes, encoding: str) -> bytes:
        if encoding in ("", "identity"):
            return body
        if encoding not in ENCODINGS:
            raise Refusal(415, "unknown_encoding", f"'{encoding}' is not known; gzip and deflate are")
        unpack = zlib.decompressobj(ENCODINGS[encoding])
        try:
            plain = unpack.decompress(body, self.limits.max_value_bytes + 1)
        except zlib.error as error:
            raise Refusal(400, "bad_encoding", f"the body is no {encoding}: {error}") from None
        if len(plain) > self.limits.max_value_bytes:
            raise self._too_large()
        if not unpack.eof or unpack.unused_data:  # several packed pieces in a row would be cut to the first
            raise Refusal(400, "bad_encoding", f"the body is not one whole {encoding}")
        return plain

    def _too_large(self) -> Refusal:
        return Refusal(413, "body_too_large", self._says("max_value_bytes"))

    def _head_too_large(self) -> Refusal:
        return Refusal(431, "head_too_large", self._says("max_line_bytes"))

    def _says(self, limit: str) -> str:
        return f"more than limits.{limit} ({getattr(self.limits, limit)})"

    def _grow_body(self, size: int) -> None:
        self.silent = 0
        self.size += size
        if self.size > self.limits.max_value_bytes:
            self._refuse(self._too_large())

    def _refuse(self, fault: Refusal) -> None:
        self.fault = fault
        raise fault
