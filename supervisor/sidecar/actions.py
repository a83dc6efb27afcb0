"""What changes something: POST only. Who may is decided by guard.py before a view is called.

The master logs each order with who gave it (`who`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flask import Response, request

from supervisor.sidecar.page import ASK_TIMEOUT_S, CONFLICT, INVALID, OK, Asks, Page, reply

# A reload may wait for a running one; each has deadlines of its own.
RELOAD_TIMEOUT_S = 60.0
MAX_DIGITS = 9


def who() -> str:
    """Who gives the order, for the log and the list of events."""
    return f"{request.remote_addr or 'unix'} {request.user_agent.string or 'unnamed program'}"[:120]


def _reload(link: Asks) -> Response:
    verdict = link.ask("reload", RELOAD_TIMEOUT_S, who=who())
    return reply(verdict, OK if verdict["ok"] else INVALID if verdict["invalid"] else CONFLICT)


def given(name: str) -> str:
    """A field of the body, be it a JSON object or a form; "" when it is not there."""
    try:
        fields = request.get_json(silent=True) if request.is_json else request.form
    except RecursionError:  # brackets in brackets
        fields = None
    value = fields.get(name) if isinstance(fields, Mapping) else None
    return "" if value is None else str(value)


def _order(verb: str, *fields: str, **more: object) -> Callable[[Asks], Response]:
    """The view of a verb of supervisor/orders.py: passes these fields of the body on."""

    def view(link: Asks) -> Response:
        arguments = {name: given(name) for name in fields}
        answer = link.ask(verb, ASK_TIMEOUT_S, who=who(), **arguments, **more)
        return reply(answer, OK if answer["ok"] else INVALID)

    return view


def _stop(link: Asks) -> Response:
    fast = given("fast").lower() in ("1", "true", "yes", "on")
    return reply(link.ask("stop", ASK_TIMEOUT_S, who=who(), fast=fast))


def _of_worker(verb: str, *fields: str) -> Callable[[Asks], Response]:
    """The same of a verb that takes the number of a `worker`, too."""

    def view(link: Asks) -> Response:
        worker = given("worker")
        if worker and not (worker.isdecimal() and len(worker) <= MAX_DIGITS):
            return reply({"ok": False, "error": f"'{worker[:50]}' is not the number of a worker"}, INVALID)
        return _order(verb, *fields, worker=int(worker) if worker else None)(link)

    return view


ACTIONS: tuple[Page, ...] = (
    Page("POST", "/reload", _reload, "reload; answers with the verdict: 200, 422 (invalid file) or 409 (refused)"),
    Page("POST", "/drain", _order("drain"), "out of rotation: /health/ready says 503, clients are served as before"),
    Page("POST", "/undrain", _order("undrain"), "take it back"),
    Page("POST", "/node", _order("node", "instance", "node", "state"),
         "`instance`, `node`, `state`: drain, maintenance or ready; holds until it is taken back, over reloads too"),
    Page("POST", "/room", _order("room", "instance", "room"),
         "`instance`, `room`: first, second or auto; which room serves, until it is taken back, over reloads too"),
    Page("POST", "/log-level", _order("log_level", "level"),
         "`level` holds instead of the configured one, over reloads too; an empty one ends that"),
    Page("POST", "/overrides/clear", _order("clear_overrides"), "take back all of drain, node, room and log-level"),
    Page("POST", "/disconnect", _of_worker("disconnect", "address"),
         "end the connections of client `address`: HOST:PORT, or HOST for all; `worker`, for one of a unix socket"),
    Page("POST", "/reopen-logs", _order("reopen_logs"), "open the log files anew: what USR1 does"),
    Page("POST", "/workers", _order("workers", "change"), "`change`: +1 or -1, until the next reload: TTIN and TTOU"),
    Page("POST", "/restart-worker", _of_worker("restart_worker"),
         "`worker`: its slot gets another one; when that serves, it lets its clients finish"),
    Page("POST", "/upgrade", _order("upgrade"), "what USR2 does; /stats has the verdict: `master.last_upgrade`"),
    Page("POST", "/stop", _stop, "what TERM does: stop accepting, let requests finish, end; `fast`: what INT does"),
)  # fmt: skip
