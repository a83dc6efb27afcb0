# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The records of sampled requests of the plainest kind: one line each, written straight into what waits for the disk.

A record of any other request, and of a slow one, is made by hyper_proxy/protocol/look.py; it looks the same. What does
not change from one record to the next is kept as it stands in the line, until the log's outlet has another epoch.

While requests are served only numbers are noted, in a Sight. Lines are made of DEPTH of them at a time: the processor
does that in less than half of the time when nothing else comes between.
"""

from __future__ import annotations

import time

import cython

from hyper_proxy.common.keyname import readable
from hyper_proxy.common.log_lines import FORMS, encode, second

if not cython.compiled:
    from hyper_proxy.common.clock import now
    from hyper_proxy.common.lines import Author, Lines, Outlet
    from hyper_proxy.common.xxh64 import xxh64

EVENT = "request.sampled"
# What stands behind the client, in this order, as in a record of look.py.
NAMES = (
    "command", "requests", "keys", "key", "node", "bytes_in", "bytes_out", "total_us", "parse_us", "queue_us",
    "connect_us", "storage_us", "merge_us", "write_us", "error",
)  # fmt: skip
DEPTH = 64
ROOM = 64  # for a digest, for quotes, and for what the last name overwrites
WIDTH = 24  # that a name is kept in: a copy of a length that the compiler knows takes two instructions
MOST_DIGITS = 20

# The numbers to 999, each in four bytes of which the last says how many digits it has; all bytes in hexadecimal digits.
NUMBERS: bytes = b"".join([b"%-3d%c" % (number, len(str(number))) for number in range(1000)])
PAIRS: bytes = b"".join([b"%02x" % byte for byte in range(256)])
_numbers = NUMBERS  # compiled, a pointer: see access.pxd
_pairs = PAIRS


@cython.final
@cython.cclass
class Sight:
    """What is known of a batch when it is answered. command: of its first request, with its first key at
    [key_start:key_end] of what was read; client: by Scribe.client; node: the one that was waited for last, by
    Scribe.node; seconds as in look.Phases. When it is noted: the key's digest, or the key as it stands in the line.
    """

    def __init__(self) -> None:
        self.command = self.client = self.node = b""
        self.key: bytes | None = None
        self.keys = self.key_start = self.key_end = self.requests = self.bytes_in = self.bytes_out = self.digest = 0
        self.failed = False
        self.began = self.walked = self.queue_s = self.connect_s = self.storage_s = self.ended = self.written = 0.0


@cython.final
@cython.cclass
class Scribe(Author):
    """Of one instance in one worker. sight: of the batch that is being answered; `noted` of the sights, from the first
    one on, are to become lines. show_keys: keys, not their digests.
    """

    def __init__(self, instance: str, outlet: Outlet) -> None:
        self.instance = instance
        self.outlet = outlet
        self.sights = [Sight()]
        self.sight = self.sights[0]
        self.noted = 0
        self.show_keys = False
        self.stamp = bytearray()
        self.ms_at = 0
        self.stamp_end = self.second_end = self.second_at = 0.0
        self.epoch = -1
        self.adopt()

    @property
    def mute(self) -> bool:
        """Does the log leave such records out?"""
        return self.outlet.mute

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def ready(self) -> cython.bint:
        """Can lines be written here? If not, the log takes records one by one."""
        if self.epoch != self.outlet.epoch:
            self.adopt()
        return self.outlet.lines is not None

    @cython.cfunc
    def adopt(self) -> None:
        """The log looks different now."""
        form = self.outlet.form
        json = form is FORMS["json"]
        self.epoch = self.outlet.epoch
        self.quoted = json
        self.before = encode(form.before)
        head = form.head.format("info", EVENT) + form.pairs({"instance": self.instance}) + form.name.format("client")
        self.head = b"Z" + encode(head)
        names = [self.name(name) for name in NAMES]
        self.names = b"".join(name.ljust(WIDTH) for name in names)
        self.sizes = bytes(map(len, names))
        tail = encode(form.pairs(self.outlet.common) + form.end)
        self.tail = self.value("") + tail
        self.failed_tail = self.value("reply") + tail
        self.fixed = len(self.before) + 20 + len(self.head) + len(self.names) + len(self.failed_tail)
        self.fixed += 14 * MOST_DIGITS + ROOM
        self.nobody = self.node("")
        self.stamp_end = self.second_end = 0.0

    def name(self, name: str) -> bytes:
        """A name as it stands in a line."""
        return encode(self.outlet.form.name.format(name))

    def value(self, text: str) -> bytes:
        """A text as it stands in a line."""
        return encode(self.outlet.form.value(text))

    def client(self, address: str) -> bytes:
        """A client as it stands in a line, until there is another epoch."""
        return self.value(address) + self.name("command")

    def node(self, label: str) -> bytes:
        """A server as it stands in a line, until there is another epoch."""
        return self.value(label) + self.name("bytes_in")

    @cython.cfunc
    def write(self, client: bytes, buf: bytes, written: cython.double) -> None:
        """The batch in sight is to be recorded: its requests are in `buf`, its client had the answer at `written`.

        client: as `client` has written it.
        """
        sight: Sight = self.sight
        lines: Lines = cython.cast(Lines, self.outlet.lines)
        sight.client = client
        sight.written = written
        if self.show_keys:
            sight.key = self.value(readable(buf[sight.key_start : sight.key_end]))
        else:
            sight.key = None
            sight.digest = xxh64(buf, sight.key_start, sight.key_end, 0)
        if self.noted == 0:
            lines.promise(self)
        self.noted += 1
        if self.noted == 64:  # DEPTH
            lines.finish()
            return
        if self.noted == len(self.sights):
            self.sights.append(Sight())
        self.sight = self.sights[self.noted]

    @cython.cfunc
    def finish(self) -> None:
        """Make lines of what is noted."""
        noted: cython.Py_ssize_t = self.noted
        index: cython.Py_ssize_t
        self.noted = 0
        self.sight = self.sights[0]
        for index in range(noted):
            self.write_line(self.sights[index])

    @cython.cfunc
    def write_line(self, sight: Sight) -> None:
        lines: Lines = cython.cast(Lines, self.outlet.lines)
        client: bytes = sight.client
        written: cython.double = sight.written
        key: bytes | None = sight.key
        most: cython.Py_ssize_t = self.fixed + len(client) + len(sight.node) + len(sight.command)
        if key is not None:
            most += len(key)
        at: cython.Py_ssize_t = lines.reserve(most)
        if at < 0:
            return
        if written >= self.stamp_end:
            self.turn_stamp(written)
        out: cython.p_uchar = lines.block
        names: cython.p_uchar = self.names
        sizes: cython.p_uchar = self.sizes
        first: cython.Py_ssize_t = at
        waited: cython.double = sight.queue_s + sight.connect_s + sight.storage_s
        _copy(out, at, self.stamp, 0, len(self.stamp))
        at = _put(out, at + len(self.stamp), client)
        at = _put_quoted(out, at, sight.command, self.quoted)
        at = _put_name(out, at, names, sizes, 1)
        at = _put_digits(out, at, sight.requests)
        at = _put_name(out, at, names, sizes, 2)
        at = _put_digits(out, at, sight.keys)
        at = _put_name(out, at, names, sizes, 3)
        if key is not None:
            at = _put(out, at, key)
        else:
            at = _put_digest(out, at, sight.digest, sight.key_end - sight.key_start, self.quoted)
        at = _put_name(out, at, names, sizes, 4)
        at = _put(out, at, sight.node)
        at = _put_digits(out, at, sight.bytes_in)
        at = _put_name(out, at, names, sizes, 6)
        at = _put_digits(out, at, sight.bytes_out)
        at = _put_name(out, at, names, sizes, 7)
        at = _put_us(out, at, written - sight.began)
        at = _put_name(out, at, names, sizes, 8)
        at = _put_us(out, at, sight.walked - sight.began)
        at = _put_name(out, at, names, sizes, 9)
        at = _put_us(out, at, sight.queue_s)
        at = _put_name(out, at, names, sizes, 10)
        at = _put_us(out, at, sight.connect_s)
        at = _put_name(out, at, names, sizes, 11)
        at = _put_us(out, at, sight.storage_s)
        at = _put_name(out, at, names, sizes, 12)
        at = _put_us(out, at, sight.ended - sight.walked - waited)
        at = _put_name(out, at, names, sizes, 13)
        at = _put_us(out, at, written - sight.ended)
        at = _put_name(out, at, names, sizes, 14)
        at = _put(out, at, self.failed_tail if sight.failed else self.tail)
        lines.commit(at - first)

    @cython.cfunc
    def turn_stamp(self, at: cython.double) -> None:
        """Write anew what a line of the millisecond `at`, by the clock of sight, begins with."""
        if at >= self.second_end:
            wall: cython.double = time.time() - (now() - at)
            whole: cython.double = cython.cast(cython.longlong, wall)
            start = self.before + encode(f"{second(int(whole))}.")
            self.ms_at = len(start)
            self.stamp = bytearray(start + b"000" + self.head)
            self.second_at = at - (wall - whole)
            self.second_end = self.second_at + 1.0
        ms: cython.int = cython.cast(cython.int, (at - self.second_at) * 1000)
        ms = 0 if ms < 0 else 999 if ms > 999 else ms
        stamp: cython.p_uchar = self.stamp
        stamp[self.ms_at] = 48 + ms // 100
        stamp[self.ms_at + 1] = 48 + ms // 10 % 10
        stamp[self.ms_at + 2] = 48 + ms % 10
        self.stamp_end = self.second_at + (ms + 1) * 0.001


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put(out: cython.p_uchar, at: cython.Py_ssize_t, piece: bytes) -> cython.Py_ssize_t:
    """Write these bytes at out[at:]; the index behind them, as all of these functions."""
    size: cython.Py_ssize_t = len(piece)
    _copy(out, at, piece, 0, size)
    return at + size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _copy(out: cython.p_uchar, at: cython.Py_ssize_t, source: cython.p_uchar, start: cython.Py_ssize_t,
          size: cython.Py_ssize_t) -> cython.void:
    """source[start : start+size] becomes out[at : at+size]."""
    if cython.compiled:
        memcpy(out + at, source + start, size)  # type: ignore[name-defined]  # noqa: F821
    else:
        out[at : at + size] = source[start : start + size]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_quoted(out: cython.p_uchar, at: cython.Py_ssize_t, piece: bytes, quoted: cython.bint) -> cython.Py_ssize_t:
    """A text that needs no escapes, between quotes where the form wants them."""
    if not quoted:
        return _put(out, at, piece)
    out[at] = 34
    at = _put(out, at + 1, piece)
    out[at] = 34
    return at + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_name(out: cython.p_uchar, at: cython.Py_ssize_t, names: cython.p_uchar, sizes: cython.p_uchar,
              index: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """One of the NAMES, as it stands in a line; bytes behind it are overwritten."""
    _copy(out, at, names, 24 * index, 24)  # WIDTH
    return at + sizes[index]


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_us(out: cython.p_uchar, at: cython.Py_ssize_t, seconds: cython.double) -> cython.Py_ssize_t:
    """A time in microseconds."""
    us: cython.longlong = cython.cast(cython.longlong, seconds * 1e6)
    return _put_digits(out, at, us if us > 0 else 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _put_digits(out: cython.p_uchar, at: cython.Py_ssize_t, number: cython.ulonglong) -> cython.Py_ssize_t:
    if number >= 1000:
        return _put_many_digits(out, at, number)
    _copy(out, at, _numbers, 4 * number, 4)
    return at + _numbers[4 * number + 3]


@cython.cfunc
@cython.exceptval(check=False)
def _put_many_digits(out: cython.p_uchar, at: cython.Py_ssize_t, number: cython.ulonglong) -> cython.Py_ssize_t:
    low: cython.int = number % 1000
    at = _put_digits(out, at, number // 1000)
    out[at] = 48 + low // 100
    out[at + 1] = 48 + low // 10 % 10
    out[at + 2] = 48 + low % 10
    return at + 3


@cython.cfunc
@cython.inline
def _put_digest(out: cython.p_uchar, at: cython.Py_ssize_t, digest: cython.ulonglong, size: cython.Py_ssize_t,
                quoted: cython.bint) -> cython.Py_ssize_t:
    """What hyper_proxy.common.keyname.digest says of a key of `size` bytes."""
    shift: cython.int
    if quoted:
        out[at] = 34
        at += 1
    for shift in range(56, -8, -8):
        _copy(out, at, _pairs, 2 * ((digest >> shift) & 255), 2)
        at += 2
    out[at] = 58
    at = _put_digits(out, at + 1, size)
    if quoted:
        out[at] = 34
        at += 1
    return at
