"""The Flask application: the tables of pages behind the guard. GET changes nothing; what changes is POST."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flask import Flask, Response, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import HTTPException

from supervisor.sidecar.actions import ACTIONS, fields_given
from supervisor.sidecar.formats import FILTERS
from supervisor.sidecar.guard import READING as READING_METHODS
from supervisor.sidecar.guard import Refusal, Visit, refuse_change, refuse_visitor
from supervisor.sidecar.history import History
from supervisor.sidecar.link import NoAnswer
from supervisor.sidecar.overview import HISTORY, OVERVIEW
from supervisor.sidecar.page import ASK_TIMEOUT_S, BAD_REQUEST, NOT_FOUND, TOO_MANY, UNAVAILABLE, Asks, Page, reply
from supervisor.sidecar.reading import READING
from supervisor.sidecar.report import Unknown
from supervisor.sidecar.turnstile import Crowded

PAGES: tuple[Page, ...] = (*OVERVIEW, *READING, *ACTIONS)
ROUTES = [f"{page.method} {page.path}" for page in PAGES]

SHOWN = 40  # characters of a name that is not known
# Orders are a few words.
MAX_BODY_BYTES = 64 * 1024

HEADERS = {
    # Everything comes from here, no script stands in the page, nobody frames it, no form is sent elsewhere.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def make_app(link: Asks, own_host: str, history: History) -> Flask:
    """The application; `own_host` is the host of [admin] listen, "" if that is a unix socket."""
    app = Flask("supervisor.sidecar", static_folder="static", template_folder="templates")
    app.extensions[HISTORY] = history
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.jinja_env.filters.update(FILTERS)
    app.jinja_env.trim_blocks = True

    @app.before_request
    def guard() -> Response | None:
        refusal = _refusal(link, own_host)
        if refusal is not None:
            return reply({"error": refusal.reason}, refusal.status)
        try:
            request.query_string.decode()
        except UnicodeDecodeError:
            return reply({"error": "the query is not UTF-8"}, BAD_REQUEST)
        return None

    @app.after_request
    def harden(response: Response) -> Response:
        response.headers.update(HEADERS)
        return response

    @app.errorhandler(NoAnswer)
    def silent(error: NoAnswer) -> Response:
        return reply({"error": str(error)}, UNAVAILABLE)

    @app.errorhandler(Crowded)
    def crowded(error: Crowded) -> Response:
        return reply({"error": str(error)}, TOO_MANY)

    @app.errorhandler(Unknown)
    def unknown(error: Unknown) -> Response:
        return reply({"error": str(error)}, NOT_FOUND)

    @app.errorhandler(HTTPException)
    def wrong(error: HTTPException) -> Response:
        if error.code == NOT_FOUND:
            return reply({"error": f"there is no {request.path}", "routes": ROUTES}, NOT_FOUND)
        methods = " and ".join(page.method for page in PAGES if page.path == request.path)
        misused = f"{request.path} is for {methods}, not {request.method}" if methods and error.code == 405 else ""
        response = reply({"error": misused or error.description}, error.code or 500)
        response.headers.update({name: value for name, value in error.get_headers() if name == "Allow"})
        return response

    for page in PAGES:
        endpoint = f"{page.method} {page.path}"
        app.add_url_rule(page.path, endpoint=endpoint, view_func=_bound(page, link), methods=[page.method])
    return app


def _refusal(link: Asks, own_host: str) -> Refusal | None:
    visit = Visit(
        method=request.method,
        host=request.headers.get("Host", "localhost"),
        peer=request.remote_addr or None,
        origin=request.headers.get("Origin"),
        fetch_site=request.headers.get("Sec-Fetch-Site"),
        authorization=request.headers.get("Authorization", ""),
    )
    refusal = refuse_visitor(visit, own_host)
    if refusal or request.method in READING_METHODS:
        return refusal
    return refuse_change(visit, link.ask("token", ASK_TIMEOUT_S)["token"])


def _bound(page: Page, link: Asks) -> Callable[[], Response]:
    def view() -> Response:
        fault = _unknown(page, "parameter", request.args) if page.method == "GET" else _body_fault(page)
        return reply({"error": f"{page.path}: {fault}"}, BAD_REQUEST) if fault else page.view(link)

    return view


def _body_fault(page: Page) -> str:
    """What is wrong with the fields of an order, which must not do something else than it says; "" if nothing is."""
    if request.args:
        return "an order has its fields in the body, not in the query"
    fields = fields_given()
    if fields is None:
        return "the body is neither a JSON object nor a form, or Content-Type says something else"
    return _unknown(page, "field", fields)


def _unknown(page: Page, what: str, names: Iterable[str]) -> str:
    """Of the first name that the page does not know, or that is given twice; "" if there is none."""
    for name in names:
        if name not in page.takes:
            known = f"known are {', '.join(page.takes)}" if page.takes else "it has none"
            json = "; a JSON object has Content-Type: application/json" if name.lstrip().startswith("{") else ""
            return f"there is no {what} {name[:SHOWN]!r}; {known}{json}"
        if isinstance(names, MultiDict) and len(names.getlist(name)) > 1:
            return f"the {what} {name!r} is given more than once"
    return ""
