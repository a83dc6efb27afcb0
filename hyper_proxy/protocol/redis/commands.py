"""The command table: every command of redis 7.0, what it is and what the proxy does with it.

The facts are commands.json, written by scripts/gen_commands from a running server; the decisions are treatments.py; the
places of moving keys are keyspec.py. Here they become rows. docs/redis-commands.md is made from the same table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyper_proxy.stats.classes import ADMIN, IDEMPOTENT, READ, WRITE

from . import keyspec, wording
from .command import BLOCK, Command
from .treatments import ADDED, DECISIONS, IDEMPOTENT_WRITES

FACTS_FILE = Path(__file__).with_name("commands.json")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a server says about a command; `specs` are its key specifications as COMMAND gives them."""

    name: str
    arity: int
    flags: tuple[str, ...]
    keys: tuple[int, int, int]
    categories: tuple[str, ...]
    hints: tuple[str, ...]
    specs: tuple[dict[str, Any], ...]
    subcommands: dict[str, Facts]


def _facts(name: str, row: dict[str, Any]) -> Facts:
    subcommands = {sub: _facts(f"{name}|{sub}", facts) for sub, facts in row.get("subcommands", {}).items()}
    for added, (arity, flags, categories) in ADDED.items():
        parent, _, sub = added.partition("|")
        if parent == name:
            subcommands[sub] = Facts(added, arity, flags, (0, 0, 0), categories, (), (), {})
    first, last, step = row.get("keys") or (0, 0, 0)
    texts = {field: tuple(row.get(field, ())) for field in ("flags", "categories", "hints")}
    return Facts(name, row["arity"], keys=(first, last, step), specs=tuple(row.get("specs", ())),
                 subcommands=subcommands, **texts)


def load_facts() -> tuple[str, dict[str, Facts]]:
    """The version of the server that was asked, and its table by lower-case name."""
    content = json.loads(FACTS_FILE.read_text("utf-8"))
    return content["redis"], {name: _facts(name, row) for name, row in content["commands"].items()}


def _klass(facts: Facts) -> int:
    """Reads and writes by redis' flags; scripts may write; the rest, with or without the flag "admin", is no data."""
    if "readonly" in facts.flags:
        return READ
    if "write" in facts.flags or facts.name in ("eval", "evalsha", "fcall"):
        return IDEMPOTENT if facts.name in IDEMPOTENT_WRITES else WRITE
    return ADMIN


def _row(facts: Facts) -> Command:
    decision = DECISIONS[facts.name]
    first, last, step = facts.keys
    subcommands = {sub.encode(): _row(row) for sub, row in facts.subcommands.items()}
    find_keys = keyspec.FINDERS.get(facts.name)
    return Command(
        facts.name.encode(), facts.arity, first, last, step, _klass(facts), decision.treatment,
        find_keys=find_keys,
        blocks=keyspec.streams_block if decision.treatment == BLOCK and find_keys is keyspec.streams else None,
        outside=keyspec.sort_outside if facts.name in ("sort", "sort_ro") else None,
        flags=frozenset(facts.flags),
        reduce=decision.reduce, dangerous=decision.dangerous, why=decision.why,
        subcommands=subcommands or None,
    )


VERSION, FACTS = load_facts()
COMMANDS: dict[bytes, Command] = {name.encode(): _row(facts) for name, facts in FACTS.items()}


def keys_of(command: Command, argv: list[bytes]) -> list[int]:
    """Positions of the keys in a request whose number of words is right; none when the command takes no key."""
    if command.find_keys is not None:
        return command.find_keys(argv)
    if not command.first:
        return []
    last = command.last if command.last >= 0 else len(argv) + command.last
    return list(range(command.first, last + 1, command.step))


def subcommands_of(command: Command) -> dict[bytes, Command]:
    """A container's subcommands by lower-case name; empty for any other command."""
    return command.subcommands or {}


def resolve(argv: list[bytes]) -> Command:
    """The row of a request, down to the subcommand, for a right number of words. Raises ErrorReply in redis' words."""
    command = COMMANDS.get(argv[0].lower())
    if command is None:
        raise wording.ErrorReply(wording.unknown_command(argv))
    if command.subcommands is not None and len(argv) > 1:
        command = subcommands_of(command).get(argv[1].lower())
        if command is None:
            raise wording.ErrorReply(wording.unknown_subcommand(argv))
    if not command.accepts(len(argv)):
        raise wording.ErrorReply(wording.wrong_arity(command))
    return command
