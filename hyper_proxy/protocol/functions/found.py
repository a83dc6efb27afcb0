"""What is wrong with what `unserialize` has returned: told when it is, and not looked for before."""

from __future__ import annotations

from hyper_proxy.common.plugin_error import shown
from hyper_proxy.protocol.functions.protocol import Partly, Request

WANTED = "a Request and the index behind it, a size, a Partly, or None"


def fault_of(found: object, start: int, size: int) -> str:
    """found: of the request that begins at buffer[start], in a buffer of `size` bytes."""
    if isinstance(found, Partly):
        return _of_partly(found, start, size)
    if isinstance(found, int):
        return f"the size of a request, {found}, is not above 0"
    if not isinstance(found, tuple | list) or len(found) != 2:
        return f"{WANTED} is wanted, not {shown(found)}"
    request, end = found
    if not isinstance(request, Request):
        return f"{shown(request)}, in front of the index, is no Request"
    if not isinstance(end, int):
        return f"{shown(end)}, behind the Request, is no index"
    return f"the index behind the Request, {end}, is not from {start + 1} to {size}: {_hint(end, start)}"


def _hint(end: int, start: int) -> str:
    if end <= start:
        return "it is counted from the beginning of the buffer, not of the request"
    return "return None, or a size, while bytes are lacking"


def _of_partly(partly: Partly, start: int, size: int) -> str:
    if not isinstance(partly.end, int) or not start <= partly.end <= size:
        return f"Partly.end, {shown(partly.end)}, is no index from {start} to {size}"
    if not isinstance(partly.reply, bytes):
        return f"Partly.reply, {shown(partly.reply)}, is no bytes"
    return f"Partly.lacks, {shown(partly.lacks)}, is no number from 0 on"
