"""Which server was the last to answer the present greenlet: told by those who ask servers, for those who look at a
request when it is done (hyper_proxy/protocol/look.py)."""

from __future__ import annotations

from typing import Any

from greenlet import getcurrent


def forget() -> None:
    """A request begins."""
    me: Any = getcurrent()
    me.witness = ""


def note(label: str) -> None:
    """The server of this label has answered, or failed."""
    me: Any = getcurrent()
    me.witness = label


def told() -> str:
    """The label; "" when no server was asked."""
    label: str = getattr(getcurrent(), "witness", "")
    return label
