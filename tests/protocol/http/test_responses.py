"""What every response has."""

from __future__ import annotations

from email.utils import formatdate

import pytest

from hyper_proxy.protocol.http import responses
from hyper_proxy.protocol.table import PROTOCOLS


def test_who_is_one_too_many_is_told_the_time_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    for second in (4_000_000_000, 4_000_000_001):
        monkeypatch.setattr(responses, "time", lambda now=second: now + 0.5)
        answer = PROTOCOLS["http"].full()
        assert answer.startswith(b"HTTP/1.1 503 ") and b"Connection: close\r\n" in answer
        assert f"\r\nDate: {formatdate(second, usegmt=True)}\r\n".encode() in answer
