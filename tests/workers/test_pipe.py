"""A child's end of the pipe to a master that was killed: no error, for there is nobody to whom it could matter."""

from __future__ import annotations

import socket

import gevent
import pytest

from supervisor.sidecar.link import Link, NoAnswer
from workers.pipe import MasterPipe


def test_a_worker_that_still_writes_says_nothing() -> None:
    master, own = socket.socketpair()
    pipe = MasterPipe(own.detach())
    writing = gevent.spawn(pipe.write_all)
    pipe.send({"type": "hello"})
    assert pipe.flush(10)
    master.close()  # with what it has not read: the other end is reset
    pipe.read_all(lambda message: None)
    pipe.send({"type": "ready"})
    writing.join(10)
    assert writing.successful()


def test_the_sidecar_answers_that_it_has_ended() -> None:
    master, own = socket.socketpair()
    link = Link(own.detach(), lambda message: None)
    master.close()
    with pytest.raises(NoAnswer, match="the master has ended: 'status' was not asked"):
        link.ask("status", 10)
