"""Which function answers which path and method. A new operation is one row, here and in openapi.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.functions.protocol import Request as Errand
from hyper_proxy.protocol.http import values
from hyper_proxy.protocol.http.openapi import document
from hyper_proxy.protocol.http.refusal import SHOWN, Refusal
from hyper_proxy.protocol.http.requests import Request
from hyper_proxy.protocol.http.responses import Response, as_json
from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE
from hyper_proxy.storage.keyvalue import KeyValue

ROOT = b"/v1/"
ALL_KEYS = b"_mget"
MGET = "MGET"  # what POST /v1/INSTANCE/_mget is called where only a word is seen

OnKey = Callable[[KeyValue, bytes, Request], Response]
Ask = Callable[[KeyValue], Response]


@dataclass(frozen=True, slots=True)
class Row:
    """An operation on one key, its class in the statistics, and the parameters of its query."""

    run: OnKey
    klass: int
    query: tuple[str, ...] = ()


KEY_METHODS: dict[str, Row] = {
    "GET": Row(values.get, READ),
    "HEAD": Row(values.get, READ),
    "PUT": Row(values.put, IDEMPOTENT, ("ttl", "flags")),
    "DELETE": Row(values.delete, IDEMPOTENT),
    "POST": Row(values.post, WRITE),
}


def errand_of(instance: Instance, request: Request) -> Errand:
    """What is to be asked of the storage: `content` does it, or is the Refusal that says why nothing is asked."""
    try:
        return _errand(instance, request)
    except Refusal as refusal:
        why = refusal.with_traceback(None)  # its frames have the request, which may be large
        return Errand(request.method, klass=_klass_of(request), content=why, close=not request.keep_alive)


def _errand(instance: Instance, request: Request) -> Errand:
    path, close = request.path, not request.keep_alive
    if path == b"/v1/openapi.json":
        allow(request, "GET", "HEAD")
        check_query(request)
        return Errand(request.method, content=lambda kv: as_json(200, document(instance.name)), close=close)
    if not path.startswith(ROOT):
        raise Refusal(404, "no_such_path", f"keys are at /v1/{instance.name}/KEY; the description is /v1/openapi.json")
    name, _, key = path[len(ROOT) :].partition(b"/")
    if name != instance.name.encode():
        raise Refusal(404, "no_such_instance", f"this address serves the instance '{instance.name}'")
    if key == ALL_KEYS:
        allow(request, "POST")
        check_query(request)
        names, keys = values.keys_of(request)
        return Errand(MGET, keys, content=lambda kv: values.mget(kv, names, keys), close=close)
    if not key:
        raise Refusal(404, "no_key", f"which key? /v1/{instance.name}/KEY")
    allow(request, *KEY_METHODS)
    row = KEY_METHODS[request.method]
    check_query(request, *row.query)
    given = (request.body,) if request.method == "PUT" else ()
    return Errand(request.method, (key,), row.klass, given, lambda kv: row.run(kv, key, request), close)


def _klass_of(request: Request) -> int:
    """The class of a refused request in the statistics."""
    if request.path.endswith(b"/" + ALL_KEYS):
        return READ
    row = KEY_METHODS.get(request.method)
    return row.klass if row and request.path.startswith(ROOT) else ADMIN


def allow(request: Request, *methods: str) -> None:
    """Raises Refusal when the method is another one."""
    if request.method not in methods:
        said = ", ".join(methods)
        text = f"{said} {'are' if len(methods) > 1 else 'is'} possible here"
        raise Refusal(405, "no_such_method", text, (("Allow", said),))


def check_query(request: Request, *known: str) -> None:
    """Raises Refusal when the query has another parameter, or one of two values: it would change nothing unnoticed."""
    for name in request.query:
        if name not in known:
            said = f"known here: {', '.join(known)}" if known else "none is known here"
            raise Refusal(400, "bad_query", f"there is no parameter {name[:SHOWN]!r}; {said}")
    if request.repeated:
        raise Refusal(400, "bad_query", f"the parameter {request.repeated!r} is given more than once")
