"""The Flask application: the tables of pages behind the guard. GET changes nothing; what changes is POST."""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from supervisor.sidecar.actions import ACTIONS
from supervisor.sidecar.guard import refusal
from supervisor.sidecar.link import NoAnswer
from supervisor.sidecar.page import FORBIDDEN, NOT_FOUND, UNAVAILABLE, Asks, Page, reply
from supervisor.sidecar.reading import READING

PAGES: tuple[Page, ...] = (*READING, *ACTIONS)
ROUTES = [f"{page.method} {page.path}" for page in PAGES]


def make_app(link: Asks, own_host: str) -> Flask:
    """The application; `own_host` is the host of [admin] listen."""
    app = Flask("hyper_proxy", static_folder=None)

    @app.before_request
    def guard() -> Response | None:
        reason = refusal(request.method, request.host, request.headers.get("Origin"), _peer(), own_host)
        return reply({"error": reason}, FORBIDDEN) if reason else None

    @app.errorhandler(NoAnswer)
    def silent(error: NoAnswer) -> Response:
        return reply({"error": str(error)}, UNAVAILABLE)

    @app.errorhandler(HTTPException)
    def wrong(error: HTTPException) -> Response:
        if error.code == NOT_FOUND:
            return reply({"error": f"there is no {request.path}", "routes": ROUTES}, NOT_FOUND)
        return reply({"error": error.description}, error.code or 500)

    for page in PAGES:
        app.add_url_rule(page.path, endpoint=page.path, view_func=_bound(page, link), methods=[page.method])
    return app


def _bound(page: Page, link: Asks) -> Callable[[], Response]:
    return lambda: page.view(link)


def _peer() -> str | None:
    return request.remote_addr or None
