"""GET / : the page for who was paged. Made here as a whole; a small script may load it again, reading needs none."""

from __future__ import annotations

from typing import Any

from flask import Response, current_app, render_template, request

from supervisor.sidecar import plots
from supervisor.sidecar.history import History
from supervisor.sidecar.keys import PHASES, worst_phase
from supervisor.sidecar.page import ASK_TIMEOUT_S, Asks, Page, reply
from supervisor.sidecar.samples import FLEET
from supervisor.sidecar.view import NODES_SHOWN, build_view, points_of

HISTORY = "hyper_proxy.history"
"""Where the application keeps what has been (Flask.extensions)."""


def _overview(link: Asks) -> Response:
    history: History = current_app.extensions[HISTORY]
    stats, events, config = (link.ask(verb, ASK_TIMEOUT_S) for verb in ("stats", "events", "config"))
    view = build_view(stats, events, config, history)
    if request.args.get("format") == "json":
        return reply(view)
    return Response(render_template("overview.html", **view, **_drawn(view, history)), mimetype="text/html")


def _drawn(view: dict[str, Any], history: History) -> dict[str, Any]:
    points, now = points_of(view, history), view["at"]
    return {
        "phases": PHASES,
        "nodes_shown": NODES_SHOWN,
        "rates": plots.rates(points[FLEET], now),
        "latencies": plots.latencies(points[FLEET], now),
        "sparks": {owner: plots.spark(series, now) for owner, series in points.items()},
        "bar": plots.phases,
        "worst": worst_phase,
    }


OVERVIEW: tuple[Page, ...] = (
    Page("GET", "/", _overview, "the page: is it serving, which configuration, where does it hurt; `format=json`",
         ("format",)),
)  # fmt: skip
