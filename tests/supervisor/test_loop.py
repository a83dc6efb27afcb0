"""The loop, and the pipe that hangs on it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from hyper_proxy.common.frames import MAX_FRAME_BYTES, FrameReader, Message, encode_frame
from supervisor.loop import Loop
from supervisor.pipe import MAX_QUEUED_BYTES, Pipe


@pytest.fixture
def loop() -> Iterator[Loop]:
    fresh = Loop()
    yield fresh
    fresh.close()


class Ends:
    """A pipe and its other end; what came out of it."""

    def __init__(self, loop: Loop) -> None:
        ours, self.other = socket.socketpair()
        self.messages: list[Message] = []
        self.ended = 0
        self.pipe = Pipe(loop, ours, self.messages.append, self._end)

    def _end(self) -> None:
        self.ended += 1

    def close(self) -> None:
        self.pipe.close()
        self.other.close()


@pytest.fixture
def ends(loop: Loop) -> Iterator[Ends]:
    pair = Ends(loop)
    yield pair
    pair.close()


def test_timers_fire_in_their_order_unless_cancelled(loop: Loop) -> None:
    fired: list[str] = []
    loop.later(0.02, lambda: fired.append("second"))
    loop.later(0.0, lambda: fired.append("first"))
    loop.later(0.01, lambda: fired.append("never")).cancel()
    while len(fired) < 2:
        loop.turn()
    assert fired == ["first", "second"]


def test_a_callback_may_remove_another_one_of_the_same_turn(loop: Loop) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    seen: list[int] = []

    def drop_all(events: int) -> None:
        seen.append(events)
        for mine, _ in pairs:
            loop.remove(mine)

    for mine, other in pairs:
        loop.add(mine, drop_all)
        other.send(b"x")
    loop.turn()
    assert len(seen) == 1
    for pair in pairs:
        for sock in pair:
            sock.close()


def test_messages_arrive_whole_however_they_are_cut(loop: Loop, ends: Ends) -> None:
    frames = encode_frame({"type": "a", "n": 1}) + encode_frame({"type": "b"})
    for position in range(len(frames)):
        ends.other.send(frames[position : position + 1])
        loop.turn()
    assert ends.messages == [{"type": "a", "n": 1}, {"type": "b"}]


def test_a_large_message_waits_for_a_slow_reader(loop: Loop, ends: Ends) -> None:
    text = "x" * 3_000_000
    assert ends.pipe.send({"type": "prepare", "text": text})
    ends.other.settimeout(5)
    reader = FrameReader()
    got: list[Message] = []
    while not got:
        loop.later(0.0, lambda: None)  # A turn that does not wait, when all is sent.
        loop.turn()
        got += reader.feed(ends.other.recv(1 << 20))
    assert got == [{"type": "prepare", "text": text}]


def test_a_full_queue_refuses_and_keeps_what_it_has(ends: Ends) -> None:
    message = {"type": "prepare", "text": "x" * (MAX_QUEUED_BYTES // 4)}
    answers = [ends.pipe.send(message) for _ in range(5)]
    assert answers[:3] == [True] * 3
    assert answers[-1] is False


def test_descriptors_arrive_with_their_messages(ends: Ends) -> None:
    read_end, write_end = os.pipe()
    assert ends.pipe.send({"type": "listener"}, (read_end,))
    os.close(read_end)
    data, fds, _, _ = socket.recv_fds(ends.other, 4096, 4)
    assert FrameReader().feed(data) == [{"type": "listener"}]
    os.write(write_end, b"it is the same")
    assert os.read(fds[0], 100) == b"it is the same"
    os.close(fds[0])
    os.close(write_end)


def test_the_last_words_of_a_dead_child_are_heard(loop: Loop, ends: Ends) -> None:
    ends.other.send(encode_frame({"type": "gone"}))
    ends.other.close()
    ends.pipe.finish()
    assert ends.messages == [{"type": "gone"}]
    assert not ends.pipe.open


def test_the_end_is_told_once_and_sending_after_it_is_refused(loop: Loop, ends: Ends) -> None:
    ends.other.close()
    ends.pipe.send({"type": "drain"})
    loop.turn()
    assert ends.ended == 1
    assert ends.pipe.send({"type": "drain"}) is False


def test_a_child_that_dies_over_what_it_has_not_read_has_ended_and_nothing_is_broken(
    loop: Loop, ends: Ends, capfd: pytest.CaptureFixture[str]
) -> None:
    ends.pipe.send({"type": "drain"})
    ends.other.close()
    loop.turn()
    assert (ends.ended, capfd.readouterr().err) == (1, "")


def test_nonsense_ends_the_pipe(loop: Loop, ends: Ends, capfd: pytest.CaptureFixture[str]) -> None:
    ends.other.send(b"\xff" * 8)
    loop.turn()
    assert (ends.ended, "error pipe.broken" in capfd.readouterr().err) == (1, True)


def test_the_end_is_said_after_all_that_was_sent(loop: Loop, ends: Ends) -> None:
    large = "x" * (4 * 1024 * 1024)  # more than a socket takes at once
    ends.pipe.send({"type": "a", "text": large})
    ends.pipe.say_end()
    assert not ends.pipe.send({"type": "too late"})
    ends.other.settimeout(5)
    reader, got, data = FrameReader(), [], b"more"
    while data:
        loop.later(0.0, lambda: None)  # there is nothing to wait for once the end was said
        loop.turn()
        data = ends.other.recv(8 * 1024 * 1024)
        got += reader.feed(data) if data else []
    assert got == [{"type": "a", "text": large}]


def test_a_message_that_is_too_large_is_not_sent_and_harms_nobody(loop: Loop, ends: Ends) -> None:
    assert not ends.pipe.send({"type": "large", "data": "x" * MAX_FRAME_BYTES})
    assert ends.pipe.send({"type": "small"})
    assert ends.pipe.open
