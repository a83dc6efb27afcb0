"""What changes something: POST only. Who may is decided by guard.py before a view is called.

The master logs each order with who gave it (`who`).
"""

from __future__ import annotations

from collections.abc import Mapping

from flask import Response, request

from supervisor.sidecar.page import ASK_TIMEOUT_S, CONFLICT, INVALID, OK, Asks, Page, reply

# A reload may wait for a running one; each has deadlines of its own.
RELOAD_TIMEOUT_S = 60.0
MAX_DIGITS = 9
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


def who() -> str:
    """Who gives the order, for the log and the list of events."""
    return f"{request.remote_addr or 'unix'} {request.user_agent.string or 'unnamed program'}"[:120]


def _reload(link: Asks) -> Response:
    verdict = link.ask("reload", RELOAD_TIMEOUT_S, who=who())
    return reply(verdict, OK if verdict["ok"] else INVALID if verdict["invalid"] else CONFLICT)


def fields_given() -> Mapping[str, object] | None:
    """The body, which is a JSON object or a form; None where it is neither."""
    try:
        fields = request.get_json(silent=True) if request.is_json else request.form
    except RecursionError:  # brackets in brackets
        return None
    if not request.is_json and request.mimetype not in FORMS and request.content_length:
        return None
    return fields if isinstance(fields, Mapping) else None


def _given(name: str) -> str:
    """A field of the body; "" when it is not there."""
    value = (fields_given() or {}).get(name)
    return "" if value is None else str(value)


def _order(path: str, verb: str, help_: str, *fields: str) -> Page:
    """The page of a verb of supervisor/orders.py: passes these fields of the body on; `worker` is a number."""

    def view(link: Asks) -> Response:
        arguments: dict[str, str | int | None] = {name: _given(name) for name in fields}
        if "worker" in arguments:
            worker = _given("worker")
            if worker and not (worker.isdecimal() and len(worker) <= MAX_DIGITS):
                return reply({"ok": False, "error": f"'{worker[:50]}' is not the number of a worker"}, INVALID)
            arguments["worker"] = int(worker) if worker else None
        answer = link.ask(verb, ASK_TIMEOUT_S, who=who(), **arguments)
        return reply(answer, OK if answer["ok"] else INVALID)

    return Page("POST", path, view, help_, fields)


def _stop(link: Asks) -> Response:
    fast = _given("fast").lower() in ("1", "true", "yes", "on")
    return reply(link.ask("stop", ASK_TIMEOUT_S, who=who(), fast=fast))


ACTIONS: tuple[Page, ...] = (
    Page("POST", "/reload", _reload, "reload; answers with the verdict: 200, 422 (invalid file) or 409 (refused)"),
    _order("/drain", "drain", "out of rotation: /health/ready says 503, clients are served as before"),
    _order("/undrain", "undrain", "take it back"),
    _order("/node", "node",
           "`instance`, `node`, `state`: drain, maintenance or ready; holds until it is taken back, over reloads too",
           "instance", "node", "state"),
    _order("/room", "room",
           "`instance`, `room`: first, second or auto; which room serves, until it is taken back, over reloads too",
           "instance", "room"),
    _order("/log-level", "log_level",
           "`level` holds instead of the configured one, over reloads too; an empty one ends that", "level"),
    _order("/overrides/clear", "clear_overrides", "take back all of drain, node, room and log-level"),
    _order("/disconnect", "disconnect",
           "end the connections of client `address`: HOST:PORT, or HOST for all; `worker`, for one of a unix socket",
           "address", "worker"),
    _order("/reopen-logs", "reopen_logs", "open the log files anew: what USR1 does"),
    _order("/workers", "workers", "`change`: +1 or -1, until the next reload: TTIN and TTOU", "change"),
    _order("/restart-worker", "restart_worker",
           "`worker`: its slot gets another one; when that serves, it lets its clients finish", "worker"),
    _order("/upgrade", "upgrade", "what USR2 does; /stats has the verdict: `master.last_upgrade`"),
    Page("POST", "/stop", _stop, "what TERM does: stop accepting, let requests finish, end; `fast`: what INT does",
         ("fast",)),
)  # fmt: skip
