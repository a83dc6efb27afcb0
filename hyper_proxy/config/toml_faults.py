"""Says of a text that is no toml on which line that begins, and what its writer has probably done.

The parser tells what it met, often far behind the slip: what is known of the usual ones is added to its words.
"""

from __future__ import annotations

import re
import tomllib

from hyper_proxy.config.settings import SECTIONS, header_of, name_of

MAX_OPEN_LINES = 2000
"""How far from the end the beginning of an unclosed string or list is looked for; each line costs a parse."""

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)|\(at end of document\)")
_HEADER = re.compile(r"\[\[?\s*([\w. -]+?)\s*\]\]?\s*(?:#.*)?")
_NEXT_KEY = re.compile(r"[\w-]+\s*=")
_TEMPLATE = re.compile(r"\{\{|\{%")
_TWICE = "Cannot overwrite a value"
_TWO_TABLES = re.compile(r"Cannot declare \(.*\) twice")
_MANY = {name_of(section): header_of(section) for section, row in SECTIONS.items() if row.many}
_NO_VALUE, _OPEN_LIST = "Invalid value", "Unclosed array"
_QUOTES = 'a string is written in "straight quotes"'
_TRUTHS, _IS_TRUE = ("true", "false", "yes", "no", "on", "off"), "it is true or false, in small letters"
# What tomllib says of a string that goes on to the end of its line: not what its writer has done.
_OPEN_STRING = ("Illegal character '\\n'", 'Expected "\'"')
_HINTS = {
    **dict.fromkeys(_OPEN_STRING, "is the string closed on this line?"),
    _OPEN_LIST: f"between two elements stands a comma, and {_QUOTES}",
    "Expected newline or end of document after a statement": f"one value stands behind '=', and {_QUOTES}",
    "Unclosed inline table": "a table in braces begins and ends on one line",
}


def explain_fault(text: str, error: Exception) -> tuple[int, str]:
    """The line of what the parser could not take, and the reason in words."""
    said = str(error)
    place = _PLACE.search(said)
    is_inside = place is not None and place[1] is not None
    number = int(place[1]) if place and is_inside else _open_line(text)
    line = text.split("\n")[number - 1]
    before = line[: int(place[2]) - 1] if place and is_inside else line
    reason = _PLACE.sub("", said).strip()
    header = _HEADER.fullmatch(line.strip())
    if header and (reason == _TWICE or _TWO_TABLES.fullmatch(reason)):
        return number, _of_table(header[1])
    if reason == _TWICE and "=" in line:
        return number, f"{line.partition('=')[0].strip()} is set twice"
    hint = _hint(reason, before, line)
    return number, f"{reason}: {hint}" if hint else reason


def _of_table(name: str) -> str:
    """Of a header that stands a second time, or has the name of something else."""
    many = f": what there may be several of begins with {_MANY[name]} each time" if name in _MANY else ""
    return f"[{name}] stands here a second time{many}"


def _hint(reason: str, before: str, line: str) -> str:
    """What its writer has probably done; "" if nobody knows. before: the line up to what the parser stumbled over."""
    rest = line[len(before) :].strip()
    if _TEMPLATE.search(line):
        return "is this a template that was not filled in?"
    if reason in (_NO_VALUE, _OPEN_LIST) and (hint := _of_end(before, rest, line)):
        return hint
    if reason == _NO_VALUE:
        return _IS_TRUE if rest.partition(" ")[0].lower() in _TRUTHS else _QUOTES
    if reason.startswith("Expected '=' after a key") and rest.startswith(":"):
        return "toml has key = value"
    return _HINTS.get(reason, "")


def _of_end(before: str, rest: str, line: str) -> str:
    """Where a value or the next element is missing, as something else follows, or nothing."""
    if not rest or rest.startswith("#"):
        return "nothing stands behind '='" if before.rstrip().endswith("=") else "the list is not closed"
    begins_line = not before.strip(" \t[")
    if begins_line and (_HEADER.fullmatch(line.strip()) or _NEXT_KEY.match(rest)):
        return "is the list above it closed?"
    return ""


def _open_line(text: str) -> int:
    """The line on which begins what is still open at the end of the text: the only other place that the parser names.

    It is the line after the longest beginning of the text that is valid by itself.
    """
    lines = text.split("\n")
    for count in range(len(lines) - 1, max(0, len(lines) - MAX_OPEN_LINES), -1):
        try:
            tomllib.loads("\n".join(lines[:count]))
        except (ValueError, RecursionError):
            continue
        return count + 1
    return max(1, len(lines) - MAX_OPEN_LINES)
