"""COMMAND DOCS and the HELP of every container command: what redis says about its commands, for those that are served.

redis-cli reads the former when it starts, for its hints. The texts are in command_docs.json, asked from a server by
scripts/gen_commands; the file is read when a client first asks.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import encode
from .command import LOCAL, Command
from .commands import COMMANDS, Facts, subcommands_of
from .local_command import find, served, served_subcommands
from .session_view import Handler, SessionView

DOCS_FILE = Path(__file__).with_name("command_docs.json")

# Fields of the documents that are sets of words, and the one that is a set of pairs.
_WORD_SETS = frozenset({"flags", "doc_flags"})
_HISTORY = "history"
_SUBCOMMANDS = "subcommands"


@functools.cache
def _documents() -> dict[str, dict[str, Any]]:
    """By name; a subcommand's is beside its container's."""
    table: dict[str, dict[str, Any]] = json.loads(DOCS_FILE.read_text("utf-8"))["commands"]
    for document in list(table.values()):
        table |= document.get(_SUBCOMMANDS, {})
    return table


def _document(facts: Facts, command: Command) -> Mapping[str, Any]:
    """The document, without the subcommands that are not served; a command that servers lack has an empty one."""
    document = dict(_documents().get(facts.name, {}))
    if _SUBCOMMANDS in document:
        document[_SUBCOMMANDS] = {sub.name: _document(sub, row) for sub, row in served_subcommands(facts, command)}
    return document


def _value(name: str, part: object, resp: int) -> bytes:
    if name in _WORD_SETS and isinstance(part, list):
        return encode.unordered([encode.simple(word) for word in part], resp)
    if name == _HISTORY and isinstance(part, list):
        return encode.unordered([encode.value(pair, resp) for pair in part], resp)
    if isinstance(part, Mapping):
        return _fields(part, resp)
    if isinstance(part, list):
        return encode.array([_value("", item, resp) for item in part])
    return encode.value(part, resp)


def _fields(document: Mapping[str, Any], resp: int) -> bytes:
    return encode.mapping([(encode.bulk(name), _value(name, part, resp)) for name, part in document.items()], resp)


def docs(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND DOCS [name ...]: names that are not served are left out."""
    rows = [row for row in map(find, argv[2:]) if row] if len(argv) > 2 else list(served())
    pairs = [(encode.bulk(facts.name), _fields(_document(facts, row), session.resp)) for facts, row in rows]
    return encode.mapping(pairs, session.resp)


def help_lines(session: SessionView, argv: list[bytes]) -> bytes:
    """`CONTAINER HELP`: each subcommand that is served, and what it is for."""
    container = argv[0].decode().lower()
    row = find(container.encode())
    lines = [f"{container.upper()} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"]
    for sub, _ in served_subcommands(*row) if row else ():
        lines.append(sub.name.partition("|")[2].upper())
        summary = _documents().get(sub.name, {}).get("summary")
        if summary:
            lines.append(f"    {summary}")
    return encode.array([encode.simple(line) for line in lines])


def _helps() -> Iterator[Command]:
    for container in COMMANDS.values():
        if b"help" in subcommands_of(container):
            yield subcommands_of(container)[b"help"]


HANDLERS: dict[bytes, Handler] = {
    b"command|docs": docs,
    **{row.name: help_lines for row in _helps() if row.treatment == LOCAL},
}
