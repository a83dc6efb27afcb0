"""The form of a message between the master and its children: 4 bytes of length, big-endian, then a JSON object.

Pure: bytes in, messages out. Who reads, who writes and what a full queue means is decided at both ends.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from hyper_proxy.common.errors import HyperProxyError

Message = dict[str, Any]

# A snapshot of a large fleet's counters is the biggest message, some hundred kilobytes. More than this is a broken
# stream.
MAX_FRAME_BYTES = 16 * 1024 * 1024

_LENGTH = struct.Struct("!I")


class FrameError(HyperProxyError):
    """The other end sent something that is no message: the stream can't be used any more."""

    kind = "frame"


def encode_frame(message: Message) -> bytes:
    """The bytes of one message; FrameError when it is larger than MAX_FRAME_BYTES."""
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a message '{message.get('type')}' of {len(body)} bytes is larger than {MAX_FRAME_BYTES}")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts a stream of bytes into messages, whatever the sizes in which it arrives."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """Takes the next bytes of the stream; returns the messages that are complete now. Raises FrameError."""
        buffer = self._buffer
        buffer += data
        messages: list[Message] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a message of {length} bytes is announced, the limit is {MAX_FRAME_BYTES}")
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            messages.append(_decode(bytes(buffer[start + _LENGTH.size : end])))
            start = end
        del buffer[:start]
        return messages


def _decode(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except ValueError as error:
        raise FrameError(f"a message is not JSON: {error}") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise FrameError("a message is not an object with a type")
    return message
