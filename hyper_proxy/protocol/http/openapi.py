"""The description of the interface, as OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0)."""

from __future__ import annotations

from typing import Any

from hyper_proxy import __version__
from hyper_proxy.protocol.http.values import MAX_FLAGS, MAX_TTL_S
from hyper_proxy.storage.numbers import INT64_MAX, INT64_MIN

ERROR = {"$ref": "#/components/responses/Error"}
VALUES: dict[str, Any] = {
    "value": {"type": "string", "description": "where the value is UTF-8"},
    "value_base64": {"type": "string", "contentEncoding": "base64", "description": "where it is not"},
}
VALUE = {"type": "object", "properties": VALUES}
DETAILS: dict[str, Any] = {
    "type": "object",
    "required": ["key", "ttl", "flags", "version"],
    "properties": {
        "key": {"type": "string"},
        **VALUES,
        "ttl": {"type": ["number", "null"], "description": "seconds that are left; null: for ever"},
        "flags": {"type": "integer", "minimum": 0},
        "version": {"type": "integer", "minimum": 0},
    },
}
TAG = {"ETag": {"schema": {"type": "string"}, "description": "the same for the same value in the same form"}}
RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _header(name: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": {"type": "string"}, "description": "RFC 9110, 13.1"}


def _query(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, "description": text}


def _responses(**known: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("s"): row for name, row in known.items()} | {"default": ERROR}


def _key_operations() -> dict[str, Any]:
    operations: dict[str, dict[str, Any]] = {
        "incr": {"by": {"type": "integer", "default": 1, "minimum": INT64_MIN, "maximum": INT64_MAX}},
        "append": {"value": {"type": "string"}},
        "expire": {"ttl": {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": MAX_TTL_S}},
    }
    bodies = [
        {"type": "object", "required": ["op", *([] if name == "incr" else properties)],
         "properties": {"op": {"const": name}, **properties}, "additionalProperties": False}
        for name, properties in operations.items()
    ]  # fmt: skip
    key = {"name": "key", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
           "description": "percent-encoded; any bytes"}  # fmt: skip
    found = {"description": "the value", "headers": TAG, "content": RAW | _json(DETAILS)}
    same = {"description": "If-None-Match names what is there", "headers": TAG}
    failed = {"description": "a condition does not hold", "content": _json({"$ref": "#/components/schemas/Error"})}
    ttl = _query("ttl", {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TTL_S}, "seconds that the value stays")
    flags = _query("flags", {"type": "integer", "minimum": 0, "maximum": MAX_FLAGS}, "memcache's flags")
    conditions = [_header("If-Match"), _header("If-None-Match")]
    stored = {"headers": TAG}
    return {
        "parameters": [key],
        "get": {"summary": "read a key", "parameters": conditions,
                "responses": _responses(s200=found, s304=same, s404=ERROR, s412=failed)},
        "head": {"summary": "read a key without its value",
                 "responses": _responses(s200={"description": "it is there", "headers": TAG}, s404=ERROR)},
        "put": {"summary": "store the body", "parameters": [ttl, flags, *conditions],
                "requestBody": {"content": {"*/*": {"schema": {}}}},
                "responses": _responses(s201=stored | {"description": "the key is new"},
                                        s204=stored | {"description": "its value was replaced"}, s412=failed)},
        "post": {"summary": "change what is there",
                 "requestBody": {"required": True, "content": _json({"oneOf": bodies})},
                 "responses": _responses(s200={"description": "done", "content": _json({"type": "object"})})},
        "delete": {"summary": "remove a key", "parameters": conditions,
                   "responses": _responses(s204={"description": "it is gone"}, s404=ERROR, s412=failed)},
    }  # fmt: skip


def _mget() -> dict[str, Any]:
    keys = {"type": "object", "required": ["keys"],
            "properties": {"keys": {"type": "array", "items": {"type": "string", "minLength": 1}}},
            "additionalProperties": False}  # fmt: skip
    by_key = {"type": "object", "additionalProperties": {"oneOf": [VALUE, {"type": "null"}]}}
    answer = {"type": "object", "required": ["values"], "properties": {"values": by_key}}
    return {"post": {"summary": "read several keys", "requestBody": {"required": True, "content": _json(keys)},
                     "responses": _responses(s200={"description": "by key", "content": _json(answer)})}}  # fmt: skip


def document(instance: str) -> dict[str, Any]:
    """The description of one instance's interface."""
    error = {"type": "object", "required": ["error"], "properties": {"error": {
        "type": "object", "required": ["code", "message"],
        "properties": {"code": {"type": "string"}, "message": {"type": "string"}}}}}  # fmt: skip
    described = {"description": "what went wrong", "content": _json({"$ref": "#/components/schemas/Error"})}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"hyper_proxy: {instance}", "version": __version__},
        "paths": {f"/v1/{instance}/_mget": _mget(), f"/v1/{instance}/{{key}}": _key_operations()},
        "components": {"schemas": {"Error": error}, "responses": {"Error": described}},
    }
