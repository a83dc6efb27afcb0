"""The key space as a plug-in's `map` has it: what it gives is looked at before anything is done with it.

A storage takes what it gets for what it should be. A text in the place of bytes, or a time that is infinite, would be
kept, and the fault be that of whoever reads it later, in another protocol; or what waits to be written below an upper
level could never be written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

from hyper_proxy.common.plugin_error import Owner
from hyper_proxy.protocol.functions.stopwatch import STOPWATCH
from hyper_proxy.storage.keyvalue import Change, Edit, Expire, Item, KeyValue, Mode, Put, Remove
from hyper_proxy.storage.plugged_answers import fault_of_fields

BEYOND = 1 << 64  # what has more than 64 bits


class Given:
    """`inner`, for code of `owner`: the verbs of CHECKS, and none by which the proxy itself begins and ends with it.
    They raise TypeError for arguments that are none, and RuntimeError in another thread than that of the event loop,
    which would wait for itself."""

    def __init__(self, inner: KeyValue, owner: Owner) -> None:
        self._inner = inner
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        if STOPWATCH.is_apart:
            raise RuntimeError("the storage can't be asked by `change`, nor in a thread")
        if name not in CHECKS:
            raise AttributeError(f"the storage of `map` has no {name!r}")
        verb, check = getattr(self._inner, name), CHECKS[name]
        return verb if check is None else partial(_checked, verb, check)

    def update(self, keys: Sequence[bytes], change: Change[Any]) -> tuple[Any, tuple[int, ...]]:
        """As that of a key space, which may call `change` in a thread of its own."""
        update = self.__getattr__("update")
        _check_keys(keys)

        def watched(items: list[Item | None]) -> tuple[Sequence[Edit], Any]:
            return STOPWATCH.run(self._owner, "map", _edits_of, change, items)

        return update(keys, watched)


def _edits_of(change: Change[Any], items: list[Item | None]) -> tuple[Sequence[Edit], Any]:
    edits, result = change(items)
    _check_edits(edits, len(items))
    return edits, result


def _checked(verb: Callable[..., Any], check: Callable[..., None], *args: Any, **named: Any) -> Any:
    check(*args, **named)
    return verb(*args, **named)


def _not(wanted: str, given: object) -> TypeError:
    return TypeError(f"{wanted}, not of the class {type(given).__name__}")


def _check_keys(keys: Collection[bytes], *rest: Any, **named: Any) -> None:
    if not isinstance(keys, Collection):
        raise _not("keys are a list", keys)
    for key in keys:
        _check_key(key)


def _check_key(key: bytes, *rest: Any, **named: Any) -> None:
    if not isinstance(key, bytes):
        raise _not("a key is bytes", key)


def _check_entries(entries: Collection[tuple[bytes, Put]]) -> None:
    if not isinstance(entries, Collection):
        raise _not("entries are a list", entries)
    for entry in entries:
        if not isinstance(entry, tuple) or len(entry) != 2 or not isinstance(entry[1], Put):
            raise _not("an entry is (key, Put)", entry)
        _check_key(entry[0])
    _check_edits([put for _, put in entries], len(entries))


def _check_edits(edits: Iterable[Edit], count: int) -> None:
    if not isinstance(edits, list | tuple) or len(edits) != count:
        raise TypeError("change gives a list with an edit for each key, and a result")
    for edit in edits:
        if isinstance(edit, Put):
            _check_fields(edit.value, edit.flags, edit.expires_at)
        elif isinstance(edit, Expire):
            _check_fields(b"", 0, edit.expires_at)
        elif edit is not None and not isinstance(edit, Remove):
            raise _not("an edit is Put, Expire, Remove or None", edit)


def _check_fields(value: object, flags: object, expires_at: object) -> None:
    wrong = fault_of_fields(value, flags, expires_at)
    if wrong:
        raise TypeError(f"what is to be stored {wrong}")


def _check_store(
    key: bytes, value: bytes, flags: int = 0, expires_at: float | None = None, mode: Mode = Mode.SET, version: int = 0
) -> None:
    _check_key(key)
    _check_fields(value, flags, expires_at)
    if not isinstance(mode, Mode):
        raise _not("mode is one of plugin.Mode", mode)
    _check_number("version", version)


def _check_number(what: str, number: object, least: int = 0) -> None:
    if not isinstance(number, int) or not least <= number < BEYOND:
        raise TypeError(f"{what} is a whole number from {least} to {BEYOND - 1}")


def _check_scan(cursor: int, limit: int) -> None:
    _check_number("cursor", cursor)
    _check_number("limit", limit, 1)


def _check_times(keys: Collection[bytes], expires_at: float | None) -> None:
    _check_keys(keys)
    _check_fields(b"", 0, expires_at)


def _check_data(key: bytes, data: bytes, **named: Any) -> None:
    _check_key(key)
    _check_fields(data, 0, None)


def _check_delta(key: bytes, delta: int) -> None:
    _check_key(key)
    _check_number("delta", delta, -BEYOND)


CHECKS: dict[str, Callable[..., None] | None] = {
    "get_many": _check_keys,
    "read_many": _check_keys,
    "delete_many": _check_keys,
    "put_many": _check_entries,
    "put_many_if_absent": _check_entries,
    "expire_many": _check_times,
    "persist": _check_key,
    "store": _check_store,
    "append": _check_data,
    "prepend": _check_data,
    "incr_signed": _check_delta,
    "incr_unsigned": _check_delta,
    "scan": _check_scan,
    "update": None,  # Given has its own
    "count": None,
    "clear": None,
    "kind": None,
    "keeps_versions": None,
}
"""What `map` has of a storage, and what looks at its arguments; None where there are none. Errors name classes: what a
client has sent is nothing for the log."""
