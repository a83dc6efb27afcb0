"""The Flask application: one function per page, and the table of them. GET changes nothing; what changes is POST."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from flask import Flask, Response, jsonify, request
from prometheus_client import CONTENT_TYPE_LATEST
from werkzeug.exceptions import HTTPException

from supervisor.sidecar.guard import refusal
from supervisor.sidecar.health import readiness
from supervisor.sidecar.link import NoAnswer
from supervisor.sidecar.metrics import exposition
from supervisor.sidecar.report import stats_report

# The master answers a question about itself at once and one about counters after half a second at most.
ASK_TIMEOUT_S = 2.0
# A reload may wait for a running one; each has deadlines of its own.
RELOAD_TIMEOUT_S = 60.0

OK, FORBIDDEN, NOT_FOUND, CONFLICT, INVALID, UNAVAILABLE = 200, 403, 404, 409, 422, 503


class Asks(Protocol):
    """What the pages need of the link to the master."""

    def ask(self, verb: str, timeout_s: float) -> dict[str, Any]:
        """The answer; raises NoAnswer."""


@dataclass(frozen=True, slots=True)
class Page:
    """One address of the sidecar; `help` goes to the documentation."""

    method: str
    path: str
    view: Callable[[Asks], Response]
    help: str


def _json(body: dict[str, Any], status: int = OK) -> Response:
    response = jsonify(body)
    response.status_code = status
    return response


def _stats(link: Asks) -> Response:
    return _json(stats_report(link.ask("stats", ASK_TIMEOUT_S)))


def _metrics(link: Asks) -> Response:
    return Response(exposition(link.ask("stats", ASK_TIMEOUT_S)), content_type=CONTENT_TYPE_LATEST)


def _config(link: Asks) -> Response:
    return _json(link.ask("config", ASK_TIMEOUT_S))


def _live(link: Asks) -> Response:
    # To be answered by the master is what liveness means: no check follows.
    status = link.ask("status", ASK_TIMEOUT_S)
    return _json({"live": True, "fleet": status["fleet"], "master": status["master"]})


def _ready(link: Asks) -> Response:
    reasons = readiness(link.ask("status", ASK_TIMEOUT_S))
    return _json({"ready": not reasons, "reasons": reasons}, UNAVAILABLE if reasons else OK)


def _reload(link: Asks) -> Response:
    verdict = link.ask("reload", RELOAD_TIMEOUT_S)
    return _json(verdict, OK if verdict["ok"] else INVALID if verdict["invalid"] else CONFLICT)


def _drain(link: Asks) -> Response:
    return _json(link.ask("drain", ASK_TIMEOUT_S))


def _stop(link: Asks) -> Response:
    return _json(link.ask("stop", ASK_TIMEOUT_S))


PAGES: tuple[Page, ...] = (
    Page("GET", "/stats", _stats, "counters and state as JSON, fresh from all workers"),
    Page("GET", "/metrics", _metrics, "the same for Prometheus"),
    Page("GET", "/config", _config, "the configuration in force, passwords masked"),
    Page("GET", "/health", _ready, "the same as /health/ready"),
    Page("GET", "/health/live", _live, "200 while the master answers"),
    Page("GET", "/health/ready", _ready, "200 while clients are served and the fleet is not stopping, else 503"),
    Page("POST", "/reload", _reload, "reload; answers with the verdict: 200, 422 (invalid file) or 409 (refused)"),
    Page("POST", "/drain", _drain, "what TERM does: stop accepting, let requests finish, end"),
    Page("POST", "/stop", _stop, "what INT does: end within two seconds"),
)

ROUTES = [f"{page.method} {page.path}" for page in PAGES]


def make_app(link: Asks, own_host: str) -> Flask:
    """The application; `own_host` is the host of [admin] listen."""
    app = Flask("hyper_proxy", static_folder=None)

    @app.before_request
    def guard() -> Response | None:
        reason = refusal(request.method, request.host, request.headers.get("Origin"), _peer(), own_host)
        return _json({"error": reason}, FORBIDDEN) if reason else None

    @app.errorhandler(NoAnswer)
    def silent(error: NoAnswer) -> Response:
        return _json({"error": str(error)}, UNAVAILABLE)

    @app.errorhandler(HTTPException)
    def wrong(error: HTTPException) -> Response:
        if error.code == NOT_FOUND:
            return _json({"error": f"there is no {request.path}", "routes": ROUTES}, NOT_FOUND)
        return _json({"error": error.description}, error.code or 500)

    for page in PAGES:
        app.add_url_rule(page.path, endpoint=page.path, view_func=_bound(page, link), methods=[page.method])
    return app


def _bound(page: Page, link: Asks) -> Callable[[], Response]:
    return lambda: page.view(link)


def _peer() -> str | None:
    return request.remote_addr or None
