"""What can be read: GET only, and nothing is changed by it."""

from __future__ import annotations

from flask import Response
from prometheus_client import CONTENT_TYPE_LATEST

from supervisor.sidecar.health import readiness
from supervisor.sidecar.metrics import exposition
from supervisor.sidecar.page import ASK_TIMEOUT_S, OK, UNAVAILABLE, Asks, Page, reply
from supervisor.sidecar.report import stats_report


def _stats(link: Asks) -> Response:
    return reply(stats_report(link.ask("stats", ASK_TIMEOUT_S)))


def _metrics(link: Asks) -> Response:
    return Response(exposition(link.ask("stats", ASK_TIMEOUT_S)), content_type=CONTENT_TYPE_LATEST)


def _config(link: Asks) -> Response:
    return reply(link.ask("config", ASK_TIMEOUT_S))


def _live(link: Asks) -> Response:
    # To be answered by the master is what liveness means: no check follows.
    status = link.ask("status", ASK_TIMEOUT_S)
    return reply({"live": True, "fleet": status["fleet"], "master": status["master"]})


def _ready(link: Asks) -> Response:
    reasons = readiness(link.ask("status", ASK_TIMEOUT_S))
    return reply({"ready": not reasons, "reasons": reasons}, UNAVAILABLE if reasons else OK)


READING: tuple[Page, ...] = (
    Page("GET", "/stats", _stats, "counters and state as JSON, fresh from all workers"),
    Page("GET", "/metrics", _metrics, "the same for Prometheus"),
    Page("GET", "/config", _config, "the configuration in force, passwords masked"),
    Page("GET", "/health", _ready, "the same as /health/ready"),
    Page("GET", "/health/live", _live, "200 while the master answers"),
    Page("GET", "/health/ready", _ready, "200 while clients are served and the fleet is not stopping, else 503"),
)
