"""The forms that a line of the log can have.

text    2026-03-01T12:00:00.250Z info worker.ready boot_s=0.25 slot=0        for people, grep and awk
json    {"time": "2026-03-01T12:00:00.250Z", "level": "info", "event": "worker.ready", "boot_s": 0.25, "slot": 0}
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

Fields = dict[str, object]


class Form(NamedTuple):
    """One form of a line: `before`, the time, `head` of its level and its event, the fields, `end`.

    value: how a field's value is written; name: how its name stands before it.
    """

    before: str
    head: str
    name: str
    value: Callable[[object], str]
    end: str

    def line(self, at: float, level: str, event: str, fields: Fields) -> bytes:
        """One line that ends with a newline; `at` in seconds since 1970."""
        text = f"{self.before}{_time(at)}{self.head.format(level, event)}{self.pairs(fields)}{self.end}"
        return encode(text)

    def pairs(self, fields: Fields) -> str:
        """The fields, as they stand in a line."""
        return "".join(f"{self.name.format(name)}{self.value(value)}" for name, value in fields.items())


# What may stand bare behind a `key=`; everything else is written as a JSON string, so that a line stays one line.
_bare = re.compile(r"[A-Za-z0-9\-_.:/@+,*()\[\]%&#~^{}<>|;!?$]+").fullmatch
# What JSON has a form for; anything else is written as text.
_PLAIN = (str, int, float, bool, type(None))


def encode(text: str) -> bytes:
    """As it is written to the file."""
    return text.encode("utf-8", "backslashreplace")


def _time(at: float) -> str:
    """In UTC, with milliseconds."""
    return f"{second(int(at))}.{int(at * 1000) % 1000:03d}Z"


@lru_cache(maxsize=2)
def second(at: int) -> str:
    """A time without its milliseconds. Many lines are of one second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def _value(value: object) -> str:
    if type(value) is int:
        return str(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if _bare(text) else json.dumps(text, ensure_ascii=False)


def _in_json(value: object) -> str:
    return json.dumps(_json(value), ensure_ascii=False)


def _json(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value if isinstance(value, _PLAIN) else str(value)


TEXT = Form("", " {} {}", " {}=", _value, "\n")
JSON = Form('{"time": "', '", "level": "{}", "event": "{}"', ', "{}": ', _in_json, "}\n")
FORMS = {"text": TEXT, "json": JSON}
