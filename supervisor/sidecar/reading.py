"""What can be read: GET only, and nothing is changed by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import Response, current_app, request
from werkzeug.exceptions import BadRequest

from supervisor.sidecar.health import readiness
from supervisor.sidecar.history import History
from supervisor.sidecar.keys import KEYS_SHOWN, SHOWN, big_keys, hot_keys, server_events, slow_requests
from supervisor.sidecar.metrics import exposition
from supervisor.sidecar.overview import HISTORY
from supervisor.sidecar.page import ASK_TIMEOUT_S, NOT_FOUND, OK, UNAVAILABLE, Asks, Page, reply
from supervisor.sidecar.report import select, stats_report

CLIENTS, MAX_CLIENTS = 100, 1000
MAX_DIGITS = 9


def _stats(link: Asks) -> Response:
    report = stats_report(link.ask("stats", ASK_TIMEOUT_S), _number("worker", None))
    return reply(select(report, request.args.get("instance"), request.args.get("node")))


def _metrics(link: Asks) -> Response:
    text, content_type = exposition(link.ask("stats", ASK_TIMEOUT_S), request.headers.get("Accept", ""))
    return Response(text, content_type=content_type)


def _question(verb: str) -> Callable[[Asks], Response]:
    """The view of a verb of supervisor/inquiries.py without arguments."""
    return lambda link: reply(link.ask(verb, ASK_TIMEOUT_S))


def _number(name: str, default: int | None) -> int | None:
    """A number of the query; BadRequest when it is none."""
    text = request.args.get(name, "")
    if text and not (text.isdecimal() and len(text) <= MAX_DIGITS):
        raise BadRequest(f"{name}: '{text[:50]}' is not a number")
    return int(text) if text else default


def _clients(link: Asks) -> Response:
    limit = min(_number("limit", CLIENTS) or 0, MAX_CLIENTS)
    instance = request.args.get("instance", "")
    return _found(link.ask("clients", ASK_TIMEOUT_S, instance=instance, worker=_number("worker", None), limit=limit))


def _stack(link: Asks) -> Response:
    return _found(link.ask("stack", ASK_TIMEOUT_S, worker=_number("worker", None)))


def _whose(answer: dict[str, Any]) -> dict[str, Any]:
    """Which fleet has answered."""
    return {"fleet": answer["fleet"]}


def _found(answer: dict[str, Any]) -> Response:
    return reply(answer, NOT_FOUND if "error" in answer else OK)


def _slowlog(link: Asks) -> Response:
    answer = link.ask("stats", ASK_TIMEOUT_S)
    return reply(_whose(answer) | {"slowlog": slow_requests(answer, _number("limit", SHOWN) or 0)})


def _events(link: Asks) -> Response:
    history: History = current_app.extensions[HISTORY]
    told, answer = (link.ask(verb, ASK_TIMEOUT_S) for verb in ("events", "stats"))
    events = [*told["events"], *server_events(answer), *history.events()]
    return reply(_whose(answer) | {"events": sorted(events, key=lambda event: float(event["at"]))})


def _notable(name: str, of: Callable[..., dict[str, Any]]) -> Callable[[Asks], Response]:
    """The view of hot or big keys."""

    def view(link: Asks) -> Response:
        answer = link.ask("stats", ASK_TIMEOUT_S)
        return reply(_whose(answer) | {name: of(answer, _number("limit", KEYS_SHOWN) or 0)})

    return view


def _live(link: Asks) -> Response:
    # To be answered by the master is what liveness means: no check follows.
    status = link.ask("status", ASK_TIMEOUT_S)
    return reply({"live": True, "master": status["master"]} | _whose(status))


def _ready(link: Asks) -> Response:
    status = link.ask("status", ASK_TIMEOUT_S)
    reasons = readiness(status)
    return reply({"ready": not reasons, "reasons": reasons} | _whose(status), UNAVAILABLE if reasons else OK)


READING: tuple[Page, ...] = (
    Page("GET", "/stats", _stats, "counters and state as JSON, fresh from all workers; `worker`, `instance`, `node`",
         ("worker", "instance", "node")),
    Page("GET", "/metrics", _metrics, "the same for Prometheus"),
    Page("GET", "/config", _question("config"),
         "the configuration in force, passwords masked; each key's default, line and kind"),
    Page("GET", "/slowlog", _slowlog, "slow requests, newest first, with where their time went; `limit`: 128",
         ("limit",)),
    Page("GET", "/hotkeys", _notable("hot_keys", hot_keys), "the keys that are asked for most, by instance; sampled",
         ("limit",)),
    Page("GET", "/bigkeys", _notable("big_keys", big_keys), "the keys whose values are largest, by instance; sampled",
         ("limit",)),
    Page("GET", "/clients", _clients, "who is connected, the longest first; `instance`, `worker`, `limit`: 100",
         ("instance", "worker", "limit")),
    Page("GET", "/listeners", _question("listeners"), "where clients connect, and how many wait to be accepted"),
    Page("GET", "/overrides", _question("overrides"), "what operators have ordered, and who; reloads do not touch it"),
    Page("GET", "/events", _events, "what happened last: reloads, deaths, orders, and what servers and rooms did"),
    Page("GET", "/stack", _stack, "what the greenlets of `worker` do just now, as text: for who looks for a fault",
         ("worker",)),
    Page("GET", "/health", _ready, "the same as /health/ready"),
    Page("GET", "/health/live", _live, "200 while the master answers"),
    Page("GET", "/health/ready", _ready, "200 while clients are served and the fleet is not stopping, else 503"),
)  # fmt: skip
