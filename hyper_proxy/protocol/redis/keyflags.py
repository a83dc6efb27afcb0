"""What a request does to each of its keys, for COMMAND GETKEYSANDFLAGS: the words of redis' key specifications.

Which keys there are is keyspec.py's business; here each position is only matched with the specification that covers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Two commands read or write by their options ("variable_flags"); these are the words in the lesser case.
_SET_ONLY = ("OW", "update")
_READ_ONLY = ("RO", "access")
_VARIABLE = "variable_flags"


def _begin(spec: dict[str, Any], argv: list[bytes]) -> int:
    """Where the specification's keys (or their number) begin; 0 when it does not apply to this request."""
    search = spec["begin_search"]
    if search["type"] == "index":
        return int(search["spec"]["index"])
    if search["type"] == "keyword":
        word = search["spec"]["keyword"].lower().encode()
        start = search["spec"]["startfrom"]
        places = range(start, len(argv)) if start > 0 else range(len(argv) + start, 0, -1)
        return next((at + 1 for at in places if argv[at].lower() == word), 0)
    return 0


def _covers(spec: dict[str, Any], argv: list[bytes], position: int) -> bool:
    begin = _begin(spec, argv)
    if not begin:
        return False
    find = spec["find_keys"]["spec"]
    if spec["find_keys"]["type"] == "keynum":
        first = begin + find["firstkey"]
        return first <= position < first + int(argv[begin + find["keynumidx"]])
    last = begin + find["lastkey"] if find["lastkey"] >= 0 else len(argv) + find["lastkey"]
    return begin <= position <= last


def _variable(argv: list[bytes], flags: tuple[str, ...]) -> tuple[str, ...]:
    options = [word.lower() for word in argv[2:]]
    if argv[0].lower() == b"set":
        return flags if b"get" in options[1:] else _SET_ONLY
    return flags if b"set" in options or b"incrby" in options else _READ_ONLY


def flags_of(specs: Sequence[dict[str, Any]], argv: list[bytes], position: int) -> tuple[str, ...]:
    """The words for the key at `position`; a place that no specification covers (SORT's STORE) has the last one's."""
    spec = next((spec for spec in specs if _covers(spec, argv, position)), specs[-1])
    flags = tuple(flag for flag in spec["flags"] if flag not in (_VARIABLE, "incomplete"))
    return _variable(argv, flags) if _VARIABLE in spec["flags"] else flags
