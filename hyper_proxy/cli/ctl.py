"""hyper-proxy ctl [--admin HOST:PORT] VERB: talks to the running fleet through its sidecar.

Every verb is one request; what the fleet answers is printed, and the exit status says whether it agreed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.errors import HyperProxyError

DEFAULT_ADMIN = "127.0.0.1:22122"
# Longer than the sidecar's own patience with a reload, so that its answer is what ends the wait.
TIMEOUT_S = 65.0
USAGE = 2

Answer = dict[str, Any]


class Unreachable(HyperProxyError):
    """The sidecar can't be asked."""

    kind = "unreachable"


@dataclass(frozen=True, slots=True)
class Order:
    """A verb: the request it is, what of the answer it prints, and its line of help."""

    method: str
    path: str
    show: Callable[[Answer], str]
    help: str


def _pretty(answer: Answer) -> str:
    return json.dumps(answer, indent=2)


def _verdict(answer: Answer) -> str:
    if answer.get("ok"):
        return f"reloaded: generation {answer['generation']}, {answer['summary']}"
    return f"refused, generation {answer.get('generation')} goes on serving:\n{answer.get('error')}"


def _workers(answer: Answer) -> str:
    rows = [["slot", "pid", "generation", "state", "uptime_s", "restarts", "last_exit"]]
    rows += [[str(worker[column]) for column in rows[0]] for worker in answer["workers"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _ending(answer: Answer) -> str:
    # Several fleets may run on a machine, and the default address is that of one of them: say whom this reached.
    file = answer["config"]["path"] or "the embedded default"
    return f"the fleet of {file} (master {answer['master']['pid']}) is {answer['master']['state']}"


ORDERS: dict[str, Order] = {
    "reload": Order("POST", "/reload", _verdict, "reload the configuration; waits for the verdict, 0 when it serves"),
    "show stats": Order("GET", "/stats", _pretty, "counters and state"),
    "show workers": Order("GET", "/stats", _workers, "one line for each worker slot"),
    "show config": Order("GET", "/config", _pretty, "the configuration in force, passwords masked"),
    "drain": Order("POST", "/drain", _ending, "stop accepting, let requests finish, end: what TERM does"),
    "stop": Order("POST", "/stop", _ending, "end within two seconds: what INT does"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[--admin HOST:PORT] [--json] VERB..."""
    parser.add_argument("--admin", metavar="HOST:PORT", default=DEFAULT_ADMIN, help=f"[admin] listen ({DEFAULT_ADMIN})")
    parser.add_argument("--json", action="store_true", help="print the answer as it came")
    parser.add_argument("words", metavar="VERB", nargs="+", help=", ".join(ORDERS))
    width = max(map(len, ORDERS))
    parser.epilog = "verbs:\n" + "\n".join(f"  {name:{width}}  {order.help}" for name, order in ORDERS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def run(arguments: argparse.Namespace) -> int:
    """0 when the fleet agreed, 1 when it refused or can't be reached, 2 for an unknown verb."""
    order = ORDERS.get(" ".join(arguments.words))
    if order is None:
        print(f"hyper-proxy ctl: there is no verb '{' '.join(arguments.words)}': {', '.join(ORDERS)}", file=sys.stderr)
        return USAGE
    status, answer = ask(arguments.admin, order.method, order.path)
    accepted = status < 400
    if arguments.json:
        text = _pretty(answer)
    elif "error" not in answer or "ok" in answer:
        text = order.show(answer)
    else:
        text = str(answer.get("error", answer))
    print(text, file=sys.stdout if accepted else sys.stderr)
    return 0 if accepted else 1


def ask(admin: str, method: str, path: str) -> tuple[int, Answer]:
    """Status and JSON body of one request to the sidecar. Raises Unreachable."""
    connection = http.client.HTTPConnection(admin, timeout=TIMEOUT_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        answer: Answer = json.loads(response.read())
        return response.status, answer
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"the fleet does not answer on {admin} ([admin] listen): {error}") from error
    finally:
        connection.close()
