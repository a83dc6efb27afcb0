"""hyper-proxy ctl [-c FILE | --admin HOST:PORT] VERB: talks to the running fleet through its sidecar.

Every verb is one request; what the fleet answers is printed, and the exit status says whether it agreed. Which fleet
that was stands on standard error: several may run on a machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.addresses import read_listen
from hyper_proxy.config.load import read_text

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
    if answer["ok"]:
        lines = [f"reloaded: generation {answer['generation']}, {answer['summary']}"]
    else:
        lines = [f"refused, generation {answer['generation']} goes on serving:", answer["error"]]
    return "\n".join([*lines, *answer["warnings"]])


def _workers(answer: Answer) -> str:
    rows = [["slot", "pid", "generation", "state", "uptime_s", "restarts", "last_exit"]]
    rows += [[str(worker[column]) for column in rows[0]] for worker in answer["workers"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _ending(answer: Answer) -> str:
    return f"the fleet is {answer['master']['state']}"


ORDERS: dict[str, Order] = {
    "reload": Order("POST", "/reload", _verdict, "reload the configuration; waits for the verdict, 0 when it serves"),
    "show stats": Order("GET", "/stats", _pretty, "counters and state"),
    "show workers": Order("GET", "/stats", _workers, "one line for each worker slot"),
    "show config": Order("GET", "/config", _pretty, "the configuration in force, passwords masked"),
    "drain": Order("POST", "/drain", _ending, "stop accepting, let requests finish, end: what TERM does"),
    "stop": Order("POST", "/stop", _ending, "end within two seconds: what INT does"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[-c FILE | --admin HOST:PORT] [--json] VERB..."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-c", "--config", metavar="FILE", help="the fleet of this file, at its [admin] listen; no other")
    which.add_argument("--admin", metavar="HOST:PORT", help=f"whichever fleet answers there (default {DEFAULT_ADMIN})")
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
    admin = arguments.admin or DEFAULT_ADMIN
    if arguments.config is not None:
        admin = admin_of(arguments.config)
        _expect_fleet(admin, arguments.config)
    status, answer = ask(admin, order.method, order.path)
    accepted = status < 400
    if "fleet" in answer:
        print(f"fleet of {_name(answer['fleet'])}, at {admin}", file=sys.stderr)
    if arguments.json:
        text = _pretty(answer)
    elif "error" not in answer or "ok" in answer:
        text = order.show(answer)
    else:
        text = str(answer.get("error", answer))
    print(text, file=sys.stdout if accepted else sys.stderr)
    return 0 if accepted else 1


def admin_of(path: str) -> str:
    """[admin] listen of a file, whatever else is wrong with it: to hear that is what a reload may be for.

    Raises ConfigError when the file can't be read, Unreachable when it names no address.
    """
    try:
        table = tomllib.loads(read_text(path)).get("admin", {})
        return read_listen(table.get("listen", DEFAULT_ADMIN)).address
    except (ValueError, AttributeError, RecursionError) as error:  # no toml, no address; no table, no string
        raise Unreachable(f"{path}: [admin] listen can't be read: {error}; use --admin HOST:PORT") from error


def _expect_fleet(admin: str, path: str) -> None:
    """Raises Unreachable when the fleet of another file answers."""
    answer = ask(admin, "GET", "/health/live")[1]
    if "fleet" not in answer:
        raise Unreachable(f"{admin}: {answer.get('error', answer)}")
    fleet = answer["fleet"]
    if os.path.realpath(fleet["file"]) != os.path.realpath(path):
        raise Unreachable(f"{admin} is [admin] listen of {path}, but the fleet of {_name(fleet)} answers there")


def _name(fleet: dict[str, Any]) -> str:
    return f"{fleet['file'] or 'the embedded default'} (master {fleet['master']})"


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
