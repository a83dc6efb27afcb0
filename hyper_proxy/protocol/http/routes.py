"""Which function answers which path and method. A new operation is one row, here and in openapi.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hyper_proxy.protocol.http import values
from hyper_proxy.protocol.http.openapi import document
from hyper_proxy.protocol.http.refusal import Refusal
from hyper_proxy.protocol.http.requests import Request
from hyper_proxy.protocol.http.responses import Response, as_json
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE

if TYPE_CHECKING:
    from hyper_proxy.front import Snapshot

ROOT = b"/v1/"

OnKey = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Row:
    """An operation on one key, and its class in the statistics."""

    run: OnKey
    klass: int


KEY_METHODS: dict[str, Row] = {
    "GET": Row(values.get, READ),
    "HEAD": Row(values.get, READ),
    "PUT": Row(values.put, IDEMPOTENT),
    "DELETE": Row(values.delete, IDEMPOTENT),
    "POST": Row(values.post, WRITE),
}


def klass_of(request: Request) -> int:
    """The class of a request in the statistics."""
    if request.path.endswith(b"/_mget"):
        return READ
    row = KEY_METHODS.get(request.method)
    return row.klass if row and request.path.startswith(ROOT) else ADMIN


def answer(snapshot: Snapshot, request: Request) -> Response:
    """Raises Refusal, or whatever the storage raises."""
    instance = snapshot.instance
    if request.path == b"/v1/openapi.json":
        allow(request, "GET", "HEAD")
        return as_json(200, document(instance.name))
    if not request.path.startswith(ROOT):
        raise Refusal(404, "no_such_path", f"keys are at /v1/{instance.name}/KEY; the description is /v1/openapi.json")
    name, _, key = request.path[len(ROOT) :].partition(b"/")
    if name != instance.name.encode():
        raise Refusal(404, "no_such_instance", f"this address serves the instance '{instance.name}'")
    if key == b"_mget":
        allow(request, "POST")
        return values.mget(snapshot.storage, request, instance.limits.max_arguments)
    if not key:
        raise Refusal(404, "no_key", f"which key? /v1/{instance.name}/KEY")
    if len(key) > instance.limits.max_key_bytes:
        raise Refusal(400, "key_too_long", f"longer than limits.max_key_bytes ({instance.limits.max_key_bytes})")
    allow(request, *KEY_METHODS)
    return KEY_METHODS[request.method].run(snapshot.storage, key, request)


def allow(request: Request, *methods: str) -> None:
    """Raises Refusal when the method is another one."""
    if request.method not in methods:
        said = ", ".join(methods)
        raise Refusal(405, "no_such_method", f"{said} are possible here", headers=(("Allow", said),))
