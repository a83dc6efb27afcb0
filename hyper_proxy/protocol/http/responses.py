"""Responses to bytes."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from time import time
from typing import Any

from hyper_proxy.protocol.http.refusal import Refusal
from hyper_proxy.protocol.http.requests import GZIP, Request

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
JSON = "application/json"
RAW = "application/octet-stream"
WORTH_PACKING = 512  # bytes; below it the head of the packing eats what it saves
LEVEL = 1  # the fastest: a proxy is asked for speed
NO_BODY = frozenset({204, 304})
PHRASES = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class Response:
    """`headers` besides those that every response has."""

    status: int
    body: bytes = b""
    content_type: str = RAW
    headers: tuple[tuple[str, str], ...] = ()


class Clock:
    """The time as responses tell it, written anew once a second."""

    def __init__(self) -> None:
        self.second = 0
        self.text = ""

    def date(self) -> str:
        """Of now (RFC 9110, 5.6.7)."""
        second = int(time())
        if second != self.second:
            self.second, self.text = second, formatdate(second, usegmt=True)
        return self.text


CLOCK = Clock()


def as_json(status: int, content: Any, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """A response of plain data."""
    return Response(status, json.dumps(content, ensure_ascii=False).encode() + b"\n", JSON, headers)


def of_refusal(refusal: Refusal) -> Response:
    """An error, always in the same form."""
    content = {"error": {"code": refusal.word, "message": str(refusal)}}
    return as_json(refusal.status, content, refusal.headers)


def encode(response: Response, request: Request, *, close: bool) -> bytes:
    """The bytes to send. close: the connection ends behind it."""
    body = response.body
    head = f"HTTP/1.1 {response.status} {PHRASES[response.status]}\r\nDate: {CLOCK.date()}\r\n"
    for name, value in response.headers:
        head += f"{name}: {value}\r\n"
    if response.status not in NO_BODY:
        packing = accepted(request.header("accept-encoding")) if len(body) >= WORTH_PACKING else ""
        if packing:
            body = pack(body, packing)
            head += f"Content-Encoding: {packing}\r\nVary: Accept-Encoding\r\n"
        head += f"Content-Type: {response.content_type}\r\nContent-Length: {len(body)}\r\n"
    head += "Connection: close\r\n\r\n" if close else "\r\n"
    silent = request.method == "HEAD" or response.status in NO_BODY
    return head.encode("latin-1") if silent else head.encode("latin-1") + body


def accepted(text: str) -> str:
    """The packing that a client takes: gzip, deflate or ""; one with a weight of 0 is refused (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for part in text.lower().split(","):
        name, _, parameter = part.strip().partition(";")
        weight = parameter.strip().removeprefix("q=") if parameter else "1"
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            weights[name.strip()] = 0.0
    for name in ("gzip", "deflate"):
        if weights.get(name, weights.get("*", 0.0)) > 0:
            return name
    return ""


def pack(body: bytes, packing: str) -> bytes:
    """The body as gzip or deflate (zlib's form, which RFC 9110 means by it)."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP if packing == "gzip" else zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()
