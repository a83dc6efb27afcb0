"""What changes something: POST only. Who may is decided by guard.py before a view is called.

The master logs each order with who gave it (`who`).
"""

from __future__ import annotations

from flask import Response, request

from supervisor.sidecar.page import ASK_TIMEOUT_S, CONFLICT, INVALID, OK, Asks, Page, reply

# A reload may wait for a running one; each has deadlines of its own.
RELOAD_TIMEOUT_S = 60.0


def who() -> str:
    """Who gives the order, for the log and the list of events."""
    return f"{request.remote_addr or 'unix'} {request.user_agent.string or 'unnamed program'}"[:120]


def _reload(link: Asks) -> Response:
    verdict = link.ask("reload", RELOAD_TIMEOUT_S, who=who())
    return reply(verdict, OK if verdict["ok"] else INVALID if verdict["invalid"] else CONFLICT)


def _drain(link: Asks) -> Response:
    return reply(link.ask("drain", ASK_TIMEOUT_S, who=who()))


def _stop(link: Asks) -> Response:
    return reply(link.ask("stop", ASK_TIMEOUT_S, who=who()))


ACTIONS: tuple[Page, ...] = (
    Page("POST", "/reload", _reload, "reload; answers with the verdict: 200, 422 (invalid file) or 409 (refused)"),
    Page("POST", "/drain", _drain, "what TERM does: stop accepting, let requests finish, end"),
    Page("POST", "/stop", _stop, "what INT does: end within two seconds"),
)
