"""Where the keys are, in the commands that do not have them at fixed places.

Each function takes the words of a request, the command's name first, and gives the positions of its keys in rising
order. A request whose words are malformed gives the keys that are certain, perhaps none: any node then words the error
as redis does. The rules are those by which redis 7.0 runs the commands; tests compare them with COMMAND GETKEYS of a
real server, which for malformed requests goes by simpler rules.
"""

from __future__ import annotations

from collections.abc import Callable

FindKeys = Callable[[list[bytes]], list[int]]


def numkeys(count_at: int, *, target: int = 0) -> FindKeys:
    """Finder for `... numkeys key [key ...] ...`: the number is at `count_at`, a key before it at `target`."""

    def find(argv: list[bytes]) -> list[int]:
        head = [target] if target else []
        try:
            count = int(argv[count_at])
        except (ValueError, IndexError):
            return head
        first = count_at + 1
        if count < 0 or first + count > len(argv):
            return head
        head.extend(range(first, first + count))
        return head

    return find


# XREAD and XREADGROUP: options before STREAMS and how many words each takes.
_STREAM_OPTIONS = {b"block": 1, b"count": 1, b"group": 2, b"noack": 0}


def _streams_at(argv: list[bytes]) -> tuple[int, bool]:
    """(position of the word STREAMS or 0, was BLOCK given)."""
    blocks = False
    at = 1
    while at < len(argv):
        word = argv[at].lower()
        if word == b"streams":
            return at, blocks
        width = _STREAM_OPTIONS.get(word)
        if width is None:
            break
        blocks = blocks or word == b"block"
        at += 1 + width
    return 0, blocks


def streams(argv: list[bytes]) -> list[int]:
    """XREAD, XREADGROUP: the first half of what follows STREAMS."""
    at, _ = _streams_at(argv)
    rest = len(argv) - at - 1
    if not at or not rest or rest % 2:
        return []
    return list(range(at + 1, at + 1 + rest // 2))


def streams_block(argv: list[bytes]) -> bool:
    """Would this XREAD or XREADGROUP wait for new entries?"""
    return _streams_at(argv)[1]


_SORT_OPTIONS = {b"limit": 2, b"get": 1, b"by": 1}


def sort(argv: list[bytes]) -> list[int]:
    """SORT: the list and, with STORE, the destination (the last counts). Patterns of BY and GET name no certain key."""
    target = 0
    at = 2
    while at < len(argv):
        word = argv[at].lower()
        if word == b"store" and at + 1 < len(argv):
            target = at + 1
            at += 1
        at += 1 + _SORT_OPTIONS.get(word, 0)
    return [1, target] if target else [1]


def sort_outside(argv: list[bytes]) -> bool:
    """Does this SORT read keys that it does not name: BY or GET with a `*` in the pattern?

    Such keys may lie on any shard, and a server takes those it does not hold as absent: a wrong answer, no error.
    """
    at = 2
    while at + 1 < len(argv):
        word = argv[at].lower()
        if word in (b"by", b"get") and b"*" in argv[at + 1]:
            return True
        at += 1 + _SORT_OPTIONS.get(word, 0)
    return False


def georadius(argv: list[bytes]) -> list[int]:
    """GEORADIUS and GEORADIUSBYMEMBER: the set and what stands after STORE and STOREDIST, each time."""
    positions = [1]
    at = 5
    while at + 1 < len(argv):
        if argv[at].lower() in (b"store", b"storedist"):
            positions.append(at + 1)
            at += 1
        at += 1
    return positions


_MIGRATE_OPTIONS = {b"copy": 0, b"replace": 0, b"auth": 1, b"auth2": 2}


def migrate(argv: list[bytes]) -> list[int]:
    """MIGRATE: the third word or, when that is empty, everything after KEYS."""
    at = 6
    while at < len(argv) and not argv[3]:
        word = argv[at].lower()
        if word == b"keys":
            return list(range(at + 1, len(argv)))
        at += 1 + _MIGRATE_OPTIONS.get(word, 0)
    return [3]


# By the command's name; what is absent has its keys at the fixed places of its row.
FINDERS: dict[str, FindKeys] = {
    "blmpop": numkeys(2),
    "bzmpop": numkeys(2),
    "eval": numkeys(2),
    "eval_ro": numkeys(2),
    "evalsha": numkeys(2),
    "evalsha_ro": numkeys(2),
    "fcall": numkeys(2),
    "fcall_ro": numkeys(2),
    "georadius": georadius,
    "georadiusbymember": georadius,
    "lmpop": numkeys(1),
    "migrate": migrate,
    "sintercard": numkeys(1),
    "sort": sort,
    "xread": streams,
    "xreadgroup": streams,
    "zdiff": numkeys(1),
    "zdiffstore": numkeys(2, target=1),
    "zinter": numkeys(1),
    "zintercard": numkeys(1),
    "zinterstore": numkeys(2, target=1),
    "zmpop": numkeys(1),
    "zunion": numkeys(1),
    "zunionstore": numkeys(2, target=1),
}
