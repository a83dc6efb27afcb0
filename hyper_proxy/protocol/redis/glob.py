"""redis' glob patterns (KEYS, SCAN MATCH): `*` any run, `?` any byte, `[a-z]` `[^a-z]` sets, `\\x` the byte x itself.

Matching goes back to the last star only, so its time is at most the product of the two lengths. Semantics: redis 7.0
util.c, stringmatchlen, its quirks about unclosed sets and a `\\` at the end included.
"""

from __future__ import annotations

from dataclasses import dataclass

STAR = None  # a piece that matches any run

_ALL = frozenset(range(256))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern: for each byte to match the set of allowed ones, or STAR."""

    source: bytes
    pieces: tuple[frozenset[int] | None, ...]

    def matches(self, text: bytes) -> bool:
        """Does the whole of `text` match? As in redis, only the pattern `*` and the empty one match the empty text."""
        if not text:
            return self.source in (b"", b"*")
        pieces, at, piece = self.pieces, 0, 0
        star, resume = -1, 0
        while at < len(text):
            allowed = pieces[piece] if piece < len(pieces) else frozenset()
            if allowed is STAR:
                star, resume = piece, at
                piece += 1
            elif text[at] in allowed:
                at += 1
                piece += 1
            elif star >= 0:
                resume += 1
                at, piece = resume, star + 1
            else:
                return False
        return all(left is STAR for left in pieces[piece:])


def compile_pattern(pattern: bytes) -> Pattern:
    """Read a pattern; every text is one."""
    pieces: list[frozenset[int] | None] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at:at + 1]
        if byte == b"*":
            if not pieces or pieces[-1] is not STAR:
                pieces.append(STAR)
        elif byte == b"?":
            pieces.append(_ALL)
        elif byte == b"[":
            allowed, at = _parse_set(pattern, at + 1)
            pieces.append(allowed)
        else:
            if byte == b"\\" and at + 1 < len(pattern):
                at += 1
            pieces.append(frozenset(pattern[at:at + 1]))
        at += 1
    return Pattern(pattern, tuple(pieces))


def _parse_set(pattern: bytes, at: int) -> tuple[frozenset[int], int]:
    """The bytes of a set that starts at `at`, behind its bracket, and the place of its last byte."""
    inverted = pattern[at:at + 1] == b"^"
    at += inverted
    allowed: set[int] = set()
    while at < len(pattern) and pattern[at:at + 1] != b"]":
        if pattern[at:at + 1] == b"\\" and at + 1 < len(pattern):
            at += 1
            allowed.add(pattern[at])
        elif at + 2 < len(pattern) and pattern[at + 1:at + 2] == b"-":
            low, high = sorted((pattern[at], pattern[at + 2]))
            allowed.update(range(low, high + 1))
            at += 2
        else:
            allowed.add(pattern[at])
        at += 1
    return frozenset(_ALL - allowed if inverted else allowed), min(at, len(pattern) - 1)
