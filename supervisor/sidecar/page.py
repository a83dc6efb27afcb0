"""What an address of the sidecar is made of; the tables of them are in reading.py (GET) and actions.py (POST)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from flask import Response, jsonify

# The master answers a question about itself at once and one about counters after half a second at most.
ASK_TIMEOUT_S = 2.0

OK, BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, INVALID, TOO_MANY, UNAVAILABLE = (
    200, 400, 401, 403, 404, 409, 422, 429, 503,
)  # fmt: skip


class Asks(Protocol):
    """What the pages need of the link to the master."""

    def ask(self, verb: str, timeout_s: float, **arguments: object) -> dict[str, Any]:
        """The answer of the master's verb (supervisor/desk.py), which gets the arguments. Raises NoAnswer, Crowded."""


@dataclass(frozen=True, slots=True)
class Page:
    """One address of the sidecar; `help` goes to the documentation. Views read from flask's `request`; `takes` are the
    names that may stand there: of a GET in its query, of a POST in its body."""

    method: str
    path: str
    view: Callable[[Asks], Response]
    help: str
    takes: tuple[str, ...] = ()


def reply(body: dict[str, Any], status: int = OK) -> Response:
    """A JSON answer."""
    response = jsonify(body)
    response.status_code = status
    return response
