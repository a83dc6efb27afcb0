"""The meta commands mg, ms, md and ma over a key-value storage; words and quirks are memcached 1.6.18's.

Not served, with an error that says so, is what needs more than a value, flags, expiry and version: the leases of mg
(N, R), stale items (I), and the record of hits (h, l). A key that is sent in base64 (flag b) is stored decoded, so
other commands and fronts find it; it is echoed in base64 to a request with flag b, whoever stored it.
"""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.translate_common import (
    NOT_NUMERIC,
    check_key,
    parse_exptime,
    parse_flags,
    parse_uint64,
)
from hyper_proxy.storage.keyvalue import (
    REMOVE,
    Edit,
    Item,
    KeyValue,
    Mode,
    NotANumber,
    Outcome,
    Put,
    counted,
    refuse,
    replaced,
)

MAX_WORDS = 19  # of a line; memcached reads no more flags
MAX_OPAQUE_BYTES = 31
BAD_TOKEN = "bad token in command line format"
TOO_MANY_FLAGS_OF_MG_AND_MS = wording.text_of(wording.MANY_FLAGS_READING)
TOO_MANY_FLAGS = wording.text_of(wording.MANY_FLAGS)
BAD_FLAG = wording.text_of(wording.BAD_OR_DUPLICATE_FLAG)  # md and ma say no more, whatever is wrong with a flag

CODES = {Outcome.STORED: b"HD", Outcome.NOT_STORED: b"NS", Outcome.EXISTS: b"EX", Outcome.NOT_FOUND: b"NF"}
SET_MODES = {b"S": Mode.SET, b"E": Mode.ADD, b"R": Mode.REPLACE, b"A": Mode.SET, b"P": Mode.SET}
COUNT_MODES = {b"I": 1, b"+": 1, b"D": -1, b"-": -1}


@dataclass(slots=True)
class Line:
    """A meta command line: the key, decoded; the flags in order, with tokens; what the reply's flags carry."""

    key: bytes
    shown_key: bytes
    flags: dict[bytes, bytes]
    fields: dict[bytes, bytes] = field(default_factory=dict)

    def __contains__(self, flag: bytes) -> bool:
        return flag in self.flags

    def expiry(self, setters: bytes, before: float | None, until: bytes = b"") -> float | None:
        """The time of expiry that the flags `setters` make of the one before, in their order, those before `until`."""
        expires_at = before
        for flag, token in self.flags.items():
            if flag == until:
                break
            if flag in setters:
                expires_at = parse_exptime(token, BAD_TOKEN)
        return expires_at

    def show_life(self, setters: bytes, before: float | None) -> None:
        """Let the reply's t say what holds at its place in the line, as in memcached."""
        self.fields[b"t"] = b"%d" % remaining_s(self.expiry(setters, before, until=b"t"))

    def number(self, flag: bytes, default: int) -> int:
        return parse_uint64(self.flags[flag], BAD_TOKEN) if flag in self.flags else default

    def agrees(self, item: Item) -> bool:
        """Is there no version to compare (flag C), or is it the item's?"""
        return b"C" not in self.flags or self.number(b"C", 0) == item.version

    def reply(self, code: bytes, value: bytes | None = None) -> bytes:
        """The answer: code, the flags that return something in the request's order, the value if there is one."""
        words = [code] if value is None else [b"VA %d" % len(value)]
        for flag, token in self.flags.items():
            if flag == b"O":
                words.append(b"O" + token)
            elif flag == b"k":
                words.append(b"k%b b" % self.shown_key if b"b" in self.flags else b"k" + self.shown_key)
            elif flag in self.fields:
                words.append(flag + self.fields[flag])
        return b" ".join(words) + b"\r\n" + (b"" if value is None else value + b"\r\n")


def remaining_s(expires_at: float | None) -> int:
    """Whole seconds of life left, -1 for endless."""
    return -1 if expires_at is None else max(math.ceil(expires_at - time.time()), 0)


# ---- the line's flags

def _check_mode(token: bytes) -> None:
    if len(token) != 1:
        raise ClientError("incorrect length for M token")


# Each token is checked wherever it stands, even where the command does not use it, as memcached does.
_CHECKS: dict[bytes, Callable[[bytes], object]] = {
    b"C": lambda token: parse_uint64(token, BAD_TOKEN),
    b"D": lambda token: parse_uint64(token, "invalid numeric delta value"),
    b"F": parse_flags,
    b"J": lambda token: parse_uint64(token, "invalid numeric initial value"),
    b"M": _check_mode,
    b"N": lambda token: parse_exptime(token, BAD_TOKEN),
    b"R": lambda token: parse_exptime(token, BAD_TOKEN),
    b"T": lambda token: parse_exptime(token, BAD_TOKEN),
}
_PLAIN = frozenset(b"%c" % code for code in b"bcfhklqstuvILOP")


def parse_line(kv: KeyValue, words: list[bytes], first: int, unserved: bytes, complaint: str = "") -> Line:
    """Read a line whose flags start at word `first`.

    Raises ClientError, which says `complaint` about any bad flag, or what is wrong with it when that is empty; and for
    the flags `unserved`.
    """
    check_key(words[1])
    if len(words) > MAX_WORDS:
        raise ClientError(TOO_MANY_FLAGS if complaint else TOO_MANY_FLAGS_OF_MG_AND_MS)
    try:
        line = _read_flags(words, first)
    except ClientError as error:
        raise ClientError(complaint or str(error)) from None
    if words[0] == b"ms" and line.flags.get(b"M", b"S") not in SET_MODES:
        raise ClientError("invalid mode for ms M token")
    if len(line.flags.get(b"O", b"")) > MAX_OPAQUE_BYTES:
        raise ClientError("opaque token too long")
    if b"c" in line or b"C" in line:
        kv.need_versions()
    for flag in line.flags:
        if flag in unserved:
            verb = words[0].decode()
            raise ClientError(f"flag {flag.decode()} of {verb} is not served by an instance whose storage is {kv.kind}")
    return line


def _read_flags(words: list[bytes], first: int) -> Line:
    """Unknown and repeated flags end the reading, of bad tokens the last is told: as in memcached."""
    line = Line(words[1], words[1], {})
    fault: ClientError | None = None
    for word in words[first:]:
        flag, token = word[:1], word[1:]
        if flag in line.flags:
            raise ClientError(wording.text_of(wording.DUPLICATE_FLAG))
        if flag not in _PLAIN and flag not in _CHECKS:
            raise ClientError(wording.text_of(wording.BAD_FLAG))
        line.flags[flag] = token
        try:
            if flag in _CHECKS:
                _CHECKS[flag](token)
            elif flag == b"b":
                line.key = _decode_key(words[1])
        except ClientError as error:
            if fault is None or flag != b"F":  # a bad F alone does not replace an earlier complaint
                fault = error
    if fault is not None:
        raise fault
    return line


def _decode_key(text: bytes) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ClientError("error decoding key") from None
    if not key:
        raise ClientError("error decoding key")
    return key


# ---- the commands


def get(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    """mg: read, and with T change the time of expiry too."""
    line = parse_line(kv, words, 2, b"NRhl")
    keys = [line.key]
    read = kv.get_many if b"t" in line or b"c" in line else kv.read_many
    item = (kv.expire_many(keys, line.expiry(b"T", None)) if b"T" in line else read(keys))[0]
    if item is None:
        return b"" if b"q" in line else line.reply(b"EN")
    line.show_life(b"T", item.expires_at)
    line.fields |= {b"f": b"%d" % item.flags, b"s": b"%d" % len(item.value), b"c": b"%d" % item.version}
    return line.reply(b"HD", item.value if b"v" in line else None)


def set_(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    """ms: store under the mode M, with a version to compare (C) or without."""
    line = parse_line(kv, words, 3, b"I")
    name = line.flags.get(b"M", b"S")
    mode = SET_MODES[name]
    if b"C" in line and name in (b"S", b"R"):
        mode = Mode.CAS
    version, put = line.number(b"C", 0), Put(value, parse_flags(line.flags.get(b"F", b"0")), line.expiry(b"T", None))

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], Outcome]:
        item = items[0]
        if name in (b"A", b"P"):
            if item is None:
                return [None], Outcome.NOT_STORED
            if version and not line.agrees(item):  # for these, as for ma, a version 0 is none
                return [None], Outcome.EXISTS
            if len(item.value) + len(value) > kv.longest:
                return [None], Outcome.NOT_STORED
            return [replaced(item, item.value + value if name == b"A" else value + item.value)], Outcome.STORED
        refusal = refuse(item, mode, version)
        return ([None], refusal) if refusal else ([put], Outcome.STORED)

    outcome, (stored,) = kv.update([line.key], change)
    if outcome is Outcome.STORED and b"q" in line:
        return b""
    line.fields[b"c"] = b"%d" % stored
    return line.reply(CODES[outcome])


def delete(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    """md: remove, if the version (C) agrees."""
    line = parse_line(kv, words, 2, b"I", BAD_FLAG)

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], bytes]:
        item = items[0]
        if item is None:
            return [None], b"NF"
        return ([REMOVE], b"HD") if line.agrees(item) else ([None], b"EX")

    code, _ = kv.update([line.key], change)
    return b"" if code == b"HD" and b"q" in line else line.reply(code)


def arithmetic(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    """ma: count up or down, and with N make the number if it is absent."""
    line = parse_line(kv, words, 2, b"", BAD_FLAG)
    sign = COUNT_MODES.get(line.flags.get(b"M", b"I"))
    if sign is None:
        raise ClientError("invalid mode for ma M token")
    delta = sign * line.number(b"D", 1)

    def change(items: list[Item | None]) -> tuple[Sequence[Edit], tuple[bytes, int, float | None]]:
        item = items[0]
        if item is None and b"N" not in line:
            return [None], (b"NF", 0, None)
        if item is None:
            number = line.number(b"J", 0)
            return [Put(b"%d" % number, 0, line.expiry(b"TN", None))], (b"made", number, None)
        if not item.value:
            raise NotANumber
        if line.number(b"C", 0) and not line.agrees(item):  # a version 0 is none, as for ms in the modes A and P
            return [None], (b"EX", 0, None)
        put, number = counted(item, delta)
        return [Put(put.value, put.flags, line.expiry(b"T", item.expires_at))], (b"HD", number, item.expires_at)

    try:
        (code, number, before), (version,) = kv.update([line.key], change)
    except NotANumber:
        raise ClientError(NOT_NUMERIC) from None
    if version == 0:
        return line.reply(code)
    if code == b"HD" and b"q" in line:  # as in memcached, a number that was just made is told all the same
        return b""
    line.show_life(b"T" if code == b"HD" else b"TN", before)
    line.fields[b"c"] = b"%d" % version
    return line.reply(b"HD", b"%d" % number if b"v" in line else None)
