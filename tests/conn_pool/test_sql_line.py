"""Statements over a connection that is logged in."""

from __future__ import annotations

from socket import SHUT_WR
from time import monotonic
from types import ModuleType

import gevent
import gevent.socket
import pytest

from tests.conn_pool.conftest import until
from tests.kit.plain import both


@both("hyper_proxy.conn_pool.sql_line")
def test_that_the_server_has_ended_it_is_told_at_once(module: ModuleType) -> None:
    ours, theirs = gevent.socket.socketpair()
    line = module.Line(ours)
    theirs.shutdown(SHUT_WR)
    until(lambda: line.unasked, "its end is seen")
    assert not line.is_quiet()
    with gevent.Timeout(2), pytest.raises(ConnectionResetError):
        line.ask(b"\x01\x00\x00\x00\x0e", monotonic() + 10)
    line.close()
    theirs.close()
