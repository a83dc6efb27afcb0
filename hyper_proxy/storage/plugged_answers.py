"""What is wrong with what a plug-in's storage has returned: told before anybody takes it for an answer.

Each check gets the answer and the arguments of the verb, and returns what is wrong, "" for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hyper_proxy.common.plugin_error import describe, shown
from hyper_proxy.storage.keyvalue import Item

BEYOND = 1 << 48  # what is no number of keys, and no cursor, any more
FLAGS = 1 << 32
FAR = 1 << 53  # seconds: so many are a number of milliseconds of 64 bits, too, and exact as a float
VERSIONS = 1 << 64


def looked_at(check: Callable[..., str], *answer: Any, **named: Any) -> str:
    """What the check says. Where a list is of a class of the plug-in, reading it is code of the plug-in, too."""
    try:
        return check(*answer, **named)
    except Exception as error:  # noqa: BLE001  of that code
        return f"it can't be read: {describe(error)}"


def fault_of_items(items: Any, asked: int) -> str:
    """Not one Item or None for each key."""
    if not isinstance(items, list):
        return f"{shown(items)} is no list of items"
    if len(items) != asked:
        return f"a list of {len(items)} for {asked} key{'s' if asked > 1 else ''}, where each has its Item or None"
    return next((f"{shown(item)} {wrong}" for item in items if item is not None and (wrong := _of_item(item))), "")


def fault_of_update(answer: Any, asked: int, results: Sequence[Any]) -> str:
    """results: what `change` has given, each time that it was called."""
    if not results:
        return "it has not called change"
    if not _is_pair(answer) or answer[0] is not results[-1]:
        return f"{shown(answer)} is not the result of change and the versions"
    versions = answer[1]
    if not isinstance(versions, tuple | list) or len(versions) != asked or not all(map(_is_version, versions)):
        return f"{shown(versions)} are not as many versions, numbers of 64 bits, as keys"
    return ""


def _of_item(item: Any) -> str:
    if not isinstance(item, Item):
        return "is no Item"
    wrong = fault_of_fields(item.value, item.flags, item.expires_at)
    return wrong or ("" if _is_version(item.version) else "has a version that is no number of 64 bits")


def fault_of_fields(value: Any, flags: Any, expires_at: Any) -> str:
    """What an item, or a Put, may not have."""
    if not isinstance(value, bytes):
        return f"has a value that is no bytes, but of the class {type(value).__name__}"
    if not _is_count(flags) or flags >= FLAGS:
        return "has flags that are no number of 32 bits"
    if expires_at is not None and not _is_time(expires_at):
        return "has an expires_at that is neither a time nor None"
    return ""


def _of_count(answer: Any) -> str:
    return "" if _is_count(answer) and answer < BEYOND else f"{shown(answer)} is no number of keys"


def _of_scan(answer: Any, cursor: int, limit: int) -> str:
    if not _is_pair(answer):
        return f"{shown(answer)} is not the next cursor and keys"
    following, keys = answer
    if not _is_count(following) or following >= BEYOND:
        return f"the cursor {shown(following)} is no number below 2**48"
    if following and following == cursor:
        return f"the cursor {following} leads to itself"
    if not isinstance(keys, list | tuple) or not all(isinstance(key, bytes) for key in keys):
        return f"{shown(keys)} is no list of keys"
    return ""


def _of_truth(answer: Any, *arguments: Any) -> str:
    return "" if isinstance(answer, bool) else f"{shown(answer)} is neither True nor False"


def _is_pair(answer: Any) -> bool:
    return isinstance(answer, tuple | list) and len(answer) == 2


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 0


def _is_version(number: Any) -> bool:
    return _is_count(number) and number < VERSIONS


def _is_time(number: Any) -> bool:
    return isinstance(number, int | float) and -FAR < number < FAR


CHECKS: dict[str, Callable[..., str]] = {
    "get_many": lambda answer, keys: fault_of_items(answer, len(keys)),
    "count": _of_count,
    "scan": _of_scan,
    "put_many_if_absent": _of_truth,
    "delete_many": lambda answer, keys: _of_count(answer),
    "expire_many": lambda answer, keys, expires_at: fault_of_items(answer, len(keys)),
}
"""By verb; `update` has its own, and what the others return is not looked at."""
