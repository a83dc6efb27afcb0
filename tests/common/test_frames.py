"""Messages on the pipe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.common.frames import FrameError, FrameReader, encode_frame

MESSAGES = st.lists(st.dictionaries(st.text(), st.integers() | st.text()).map(lambda d: {**d, "type": "t"}), max_size=5)


@given(MESSAGES, st.integers(1, 50))
def test_any_messages_survive_any_cut(messages: list[dict[str, object]], size: int) -> None:
    stream = b"".join(encode_frame(message) for message in messages)
    reader, got = FrameReader(), []
    for start in range(0, len(stream), size):
        got += reader.feed(stream[start : start + size])
    assert got == messages


@pytest.mark.parametrize("stream", [b"\xff\xff\xff\xff", b"\0\0\0\2[]", b"\0\0\0\2{}", b"\0\0\0\1x"])
def test_what_is_no_message_is_an_error(stream: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(stream)
