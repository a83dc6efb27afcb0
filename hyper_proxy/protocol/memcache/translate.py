"""memcache commands answered from a key-value storage (sqlite): one row a verb.

The session has framed the request and checked `allow`; a verb gets the words of the command line and the data block,
and returns the reply, which is empty when the client wants none. Words and quirks are memcached 1.6's
(https://github.com/memcached/memcached/blob/master/doc/protocol.txt). The meta commands are in translate_meta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.memcache import translate_meta as meta
from hyper_proxy.protocol.memcache import wording
from hyper_proxy.protocol.memcache.numbers import read_signed32
from hyper_proxy.protocol.memcache.translate_common import (
    BAD_LINE,
    NOT_A_DELTA,
    NOT_NUMERIC,
    check_key,
    parse_exptime,
    parse_flags,
    parse_uint64,
)
from hyper_proxy.storage.keyvalue import Item, KeyValue, Mode, NotANumber, Partial, TooLong

NOT_FOUND = b"NOT_FOUND\r\n"
BAD_EXPTIME = wording.text_of(wording.BAD_EXPTIME)
BAD_DELETE = wording.text_of(wording.BAD_DELETE)
NO_DELAY = "flush_all with a delay is not served by an instance whose storage is {}"

Verb = Callable[[KeyValue, list[bytes], bytes], bytes]


@dataclass(frozen=True, slots=True)
class Row:
    """A verb: the least and the most words of its line, its own included, and whether `noreply` may be the last."""

    run: Verb
    least: int
    most: int | None
    may_be_quiet: bool = True


# ---- reading


def _get(*, versions: bool) -> Verb:
    def get(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
        if versions:
            kv.need_versions()
        read = kv.get_many if versions else kv.read_many
        return encode_items(words[1:], read(_keys(words[1:])), versions=versions)

    return get


def _gat(*, versions: bool) -> Verb:
    def gat(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
        expires_at = parse_exptime(words[1], BAD_EXPTIME)
        if versions:
            kv.need_versions()
        return encode_items(words[2:], kv.expire_many(_keys(words[2:]), expires_at), versions=versions)

    return gat


def _keys(words: list[bytes]) -> list[bytes]:
    for word in words:
        check_key(word)
    return words


def encode_items(keys: list[bytes], items: list[Item | None], *, versions: bool) -> bytes:
    """The reply to get and its like: the items that are there, in the order of the request."""
    parts = []
    for key, item in zip(keys, items, strict=True):
        if item is not None:
            cas = b" %d" % item.version if versions else b""
            parts.append(b"VALUE %b %d %d%b\r\n%b\r\n" % (key, item.flags, len(item.value), cas, item.value))
    return b"".join(parts) + wording.END


def encode_partly(words: list[bytes], partial: Partial) -> bytes:
    """The same when some servers failed: without their keys. Empty when that is no answer to these words."""
    keys = words[2 if words[0] in (b"gat", b"gats") else 1 :]
    if not set(keys) <= partial.found.keys():
        return b""
    items = [item if isinstance(item := partial.found[key], Item) else None for key in keys]
    return encode_items(keys, items, versions=words[0].endswith(b"s"))


# ---- storing


def _store(mode: Mode) -> Verb:
    def store(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
        check_key(words[1])
        flags, expires_at = parse_flags(words[2]), parse_exptime(words[3], BAD_LINE)
        version = parse_uint64(words[5], BAD_LINE) if mode is Mode.CAS else 0
        return kv.store(words[1], value, flags, expires_at, mode, version).value + b"\r\n"

    return store


def _join(*, behind: bool) -> Verb:
    def join(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
        check_key(words[1])
        parse_flags(words[2])
        parse_exptime(words[3], BAD_LINE)
        try:
            length = kv.append(words[1], value, create=False) if behind else kv.prepend(words[1], value)
        except TooLong:
            length = None
        return b"NOT_STORED\r\n" if length is None else b"STORED\r\n"

    return join


# ---- changing


def _count(sign: int) -> Verb:
    def count(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
        check_key(words[1])
        delta = parse_uint64(words[2], NOT_A_DELTA)
        try:
            number = kv.incr_unsigned(words[1], sign * delta)
        except NotANumber:
            raise ClientError(NOT_NUMERIC) from None
        return NOT_FOUND if number is None else b"%d\r\n" % number

    return count


def touch(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    check_key(words[1])
    items = kv.expire_many(words[1:2], parse_exptime(words[2], BAD_EXPTIME))
    return b"TOUCHED\r\n" if items[0] else NOT_FOUND


def delete(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    """`0`, the time of old clients, may stand behind the key; no other time may."""
    check_key(words[1])
    if words[2:] not in ([], [b"0"], [b"noreply"], [b"0", b"noreply"]):
        raise ClientError(BAD_DELETE)
    return b"DELETED\r\n" if kv.delete_many(words[1:2]) else NOT_FOUND


def flush_all(kv: KeyValue, words: list[bytes], value: bytes) -> bytes:
    delays = [word for word in words[1:] if word != b"noreply"]
    if delays:
        delay = read_signed32(delays[0])
        if delay is None:
            raise ClientError(BAD_EXPTIME)
        if delay > 0:
            raise ClientError(NO_DELAY.format(kv.kind))
    kv.clear()
    return wording.OK


VERBS: dict[bytes, Row] = {
    b"add": Row(_store(Mode.ADD), 5, 6),
    b"append": Row(_join(behind=True), 5, 6),
    b"bget": Row(_get(versions=False), 2, None, may_be_quiet=False),
    b"cas": Row(_store(Mode.CAS), 6, 7),
    b"decr": Row(_count(-1), 3, 4),
    b"delete": Row(delete, 2, 4),
    b"flush_all": Row(flush_all, 1, 3),
    b"gat": Row(_gat(versions=False), 2, None, may_be_quiet=False),
    b"gats": Row(_gat(versions=True), 2, None, may_be_quiet=False),
    b"get": Row(_get(versions=False), 2, None, may_be_quiet=False),
    b"gets": Row(_get(versions=True), 2, None, may_be_quiet=False),
    b"incr": Row(_count(1), 3, 4),
    b"ma": Row(meta.arithmetic, 2, None, may_be_quiet=False),
    b"md": Row(meta.delete, 2, None, may_be_quiet=False),
    b"mg": Row(meta.get, 2, None, may_be_quiet=False),
    b"ms": Row(meta.set_, 3, None, may_be_quiet=False),
    b"prepend": Row(_join(behind=False), 5, 6),
    b"replace": Row(_store(Mode.REPLACE), 5, 6),
    b"set": Row(_store(Mode.SET), 5, 6),
    b"touch": Row(touch, 3, 4),
}


def execute(kv: KeyValue, words: list[bytes], value: bytes = b"") -> bytes:
    """The reply to one request. Raises BackendError when the storage fails, whether a reply is wanted or not."""
    row = VERBS.get(words[0])
    if row is None:
        served = " ".join(sorted(name.decode() for name in VERBS))
        reason = f"'{words[0].decode('utf-8', 'replace')}' is not served by an instance whose storage is {kv.kind}"
        return wording.client_error(f"{reason} (it serves: {served})")
    if len(words) < row.least or (row.most is not None and len(words) > row.most):
        return wording.ERROR
    try:
        reply = row.run(kv, words, value)
    except ClientError as error:
        reply = b"CLIENT_ERROR %b\r\n" % str(error).encode()
    return b"" if row.may_be_quiet and words[-1] == b"noreply" else reply
