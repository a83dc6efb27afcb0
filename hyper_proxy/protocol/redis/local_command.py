"""COMMAND [COUNT | INFO | LIST | GETKEYS | GETKEYSANDFLAGS], ACL CAT: the table, told to clients.

Only what the proxy serves is listed: a client that looks a command up here before it sends it should find the truth.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from . import encode, keyflags, wording
from .command import REFUSED, Command
from .commands import COMMANDS, FACTS, Facts, keys_of, subcommands_of
from .glob import compile_pattern
from .session_view import Handler, SessionView

# Every category of redis 7.0's access control lists, in the order of ACL CAT.
_CATEGORIES = """
    keyspace read write set sortedset list hash string bitmap hyperloglog geo stream pubsub admin fast slow blocking
    dangerous connection transaction scripting
"""
CATEGORIES = _CATEGORIES.split()

_BAD_COMMAND = b"ERR Invalid command specified"
_BAD_NUMBER = b"ERR Invalid number of arguments specified for command"
_BAD_WORDS = b"ERR Invalid arguments specified for command"
_NO_KEYS = b"ERR The command has no key arguments"


def is_served(command: Command) -> bool:
    """Does the proxy serve it? A container is served when one of its subcommands other than HELP is."""
    if command.subcommands is None:
        return command.treatment != REFUSED
    return any(is_served(sub) for name, sub in subcommands_of(command).items() if name != b"help")


def served() -> Iterator[tuple[Facts, Command]]:
    """Every command that is served, by name, without the subcommands."""
    for name, facts in FACTS.items():
        command = COMMANDS[name.encode()]
        if is_served(command):
            yield facts, command


def served_subcommands(facts: Facts, command: Command) -> Iterator[tuple[Facts, Command]]:
    """A container's subcommands that are served."""
    for name, sub in subcommands_of(command).items():
        if is_served(sub):
            yield facts.subcommands[name.decode()], sub


def find(name: bytes) -> tuple[Facts, Command] | None:
    """The served command or subcommand (`client|id`) of that name."""
    parent, _, sub = name.decode("utf-8", "replace").lower().partition("|")
    facts, command = FACTS.get(parent), COMMANDS.get(parent.encode())
    if facts is None or command is None or not is_served(command):
        return None
    if not sub:
        return facts, command
    return next((row for row in served_subcommands(facts, command) if row[0].name == f"{parent}|{sub}"), None)


def _words(words: tuple[str, ...], resp: int) -> bytes:
    return encode.unordered([encode.simple(word) for word in words], resp)


def _spec(spec: dict[str, Any], resp: int) -> bytes:
    pairs = [
        (encode.bulk(name), _words(tuple(part), resp) if name == "flags" else encode.value(part, resp))
        for name, part in spec.items()
    ]
    return encode.mapping(pairs, resp)


def _row(facts: Facts, command: Command, resp: int) -> bytes:
    """One element of COMMAND's reply: ten fields, in the order and the types of redis 7.0."""
    subcommands = [_row(*sub, resp) for sub in served_subcommands(facts, command)]
    return encode.array([
        encode.bulk(facts.name),
        encode.integer(facts.arity),
        _words(facts.flags, resp),
        *(encode.integer(place) for place in facts.keys),
        _words(facts.categories, resp),
        encode.unordered([encode.bulk(hint) for hint in facts.hints], resp),
        encode.unordered([_spec(spec, resp) for spec in facts.specs], resp),
        encode.array(subcommands) if subcommands else encode.unordered([], resp),
    ])


@functools.cache
def _whole_table(resp: int) -> bytes:
    """COMMAND's reply: 70 KB that are the same for every client, so they are made once."""
    return encode.array([_row(facts, command, resp) for facts, command in served()])


def command(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND."""
    return _whole_table(session.resp)


def count(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND COUNT."""
    return encode.integer(sum(1 for _ in served()))


def info(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND INFO [name ...]: null for each name that is not served."""
    if len(argv) == 2:
        return _whole_table(session.resp)
    rows = [find(word) for word in argv[2:]]
    return encode.array([_row(*row, session.resp) if row else encode.null(session.resp) for row in rows])


def listing(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND LIST [FILTERBY MODULE name | ACLCAT category | PATTERN pattern]; subcommands are listed too."""
    everything = [row for facts, command in served() for row in (facts, *_subfacts(facts, command))]
    if len(argv) == 2:
        return _names(everything)
    if len(argv) != 5 or argv[2].lower() != b"filterby":
        return encode.error(wording.SYNTAX)
    kind, word = argv[3].lower(), argv[4].lower()
    if kind == b"module":
        return encode.EMPTY_ARRAY
    if kind == b"aclcat":
        return _names([facts for facts in everything if "@" + word.decode("utf-8", "replace") in facts.categories])
    if kind == b"pattern":
        pattern = compile_pattern(word)
        return _names([facts for facts in everything if pattern.matches(facts.name.encode())])
    return encode.error(wording.SYNTAX)


def _subfacts(facts: Facts, command: Command) -> list[Facts]:
    return [sub for sub, _ in served_subcommands(facts, command)]


def _names(rows: list[Facts]) -> bytes:
    return encode.array([encode.bulk(facts.name) for facts in rows])


def _facts(row: Command) -> Facts:
    parent, _, sub = row.name.decode().partition("|")
    return FACTS[parent].subcommands[sub] if sub else FACTS[parent]


def _find_keys(argv: list[bytes]) -> tuple[Facts, list[bytes], list[int]]:
    """The facts of the command that is asked about, the request's words, and where its keys are; raises ErrorReply."""
    words = argv[2:]
    row = COMMANDS.get(words[0].lower())
    if row is not None and row.subcommands is not None:
        row = subcommands_of(row).get(words[1].lower()) if len(words) > 1 else None
    if row is None:
        raise wording.ErrorReply(_BAD_COMMAND)
    facts = _facts(row)
    if all("not_key" in spec["flags"] for spec in facts.specs):
        raise wording.ErrorReply(_NO_KEYS)
    if not row.accepts(len(words)):
        raise wording.ErrorReply(_BAD_NUMBER)
    positions = keys_of(row, words)
    if not positions and "no_mandatory_keys" not in facts.flags:
        raise wording.ErrorReply(_BAD_WORDS)
    return facts, words, positions


def getkeys(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND GETKEYS command [word ...]. Raises ErrorReply."""
    _, words, positions = _find_keys(argv)
    return encode.array([encode.bulk(words[at]) for at in positions])


def getkeysandflags(session: SessionView, argv: list[bytes]) -> bytes:
    """COMMAND GETKEYSANDFLAGS command [word ...]. Raises ErrorReply."""
    facts, words, positions = _find_keys(argv)
    return encode.array([
        encode.array([encode.bulk(words[at]), _words(keyflags.flags_of(facts.specs, words, at), session.resp)])
        for at in positions
    ])


def categories(session: SessionView, argv: list[bytes]) -> bytes:
    """ACL CAT [category]: all categories, or the served commands of one."""
    if len(argv) == 2:
        return encode.value(CATEGORIES, session.resp)
    if len(argv) > 3:
        return encode.error(wording.unknown_subcommand(argv))
    category = argv[2].decode("utf-8", "replace").lower()
    if category not in CATEGORIES:
        return encode.error(b"ERR Unknown category '%b'" % argv[2])
    rows = [row for facts, command in served() for row in (facts, *_subfacts(facts, command))]
    return _names([facts for facts in rows if f"@{category}" in facts.categories and not facts.subcommands])


HANDLERS: dict[bytes, Handler] = {
    b"acl|cat": categories,
    b"command": command,
    b"command|count": count,
    b"command|getkeys": getkeys,
    b"command|getkeysandflags": getkeysandflags,
    b"command|info": info,
    b"command|list": listing,
}
