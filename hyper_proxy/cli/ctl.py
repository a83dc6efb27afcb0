"""hyper-proxy ctl [-c FILE | --admin ADDRESS] VERB: talks to the running fleet through its sidecar.

Every verb is one request (ctl_orders.py), and two of them ask again until something has become so; what the fleet
answers is printed, and the exit status says whether it agreed. Which fleet that was stands on standard error: several
may run on a machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress

from hyper_proxy.cli import admin as sidecar
from hyper_proxy.cli.admin import Admin, Answer, Unreachable, find_admin, fleet_name
from hyper_proxy.cli.ctl_orders import OPTIONS, ORDERS, Misused, check_options, read_words, usage
from hyper_proxy.cli.ctl_show import pretty

OK, FAILED, USAGE = 0, 1, 2

UNAUTHORIZED = 401
TOKEN_HINT = f"\nctl takes it from the file of -c FILE, or from the environment: {sidecar.TOKEN_VARIABLE}"

POLL_S, LONGEST_S = 0.1, 86400.0
HEALTH, WAITS, UPGRADES = "health", "wait-ready", "upgrade"
# An upgrade has a deadline of its own: [proxy] upgrade_timeout_s, 30 s by default.
TIMEOUTS_S = {WAITS: 30.0, UPGRADES: 90.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[-c FILE | --admin ADDRESS] [--json] [--worker N] [--limit N] [--timeout S] VERB..."""
    sidecar.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as it came")
    parser.add_argument("--worker", type=int, metavar="N", help="of show stats, clients, stack, disconnect: this one")
    parser.add_argument("--limit", type=int, metavar="N", help="of show clients, slowlog and keys: how many")
    seconds = ", ".join(f"{name} ({seconds:g})" for name, seconds in TIMEOUTS_S.items())
    parser.add_argument("--timeout", type=sidecar.seconds(0, LONGEST_S), metavar="S", help=f"seconds, of {seconds}")
    parser.add_argument("words", metavar="VERB", nargs="*", help=argparse.SUPPRESS)
    width = max(len(usage(name)) for name in ORDERS)
    lines = [f"  {usage(name):{width}}  {order.help}" for name, order in ORDERS.items()]
    parser.epilog = "\n".join(["verbs:", *lines, EXIT])
    parser.usage = "hyper-proxy ctl [-c FILE | --admin ADDRESS] [options] VERB"
    parser.formatter_class = _Wide


class _Wide(argparse.RawDescriptionHelpFormatter):
    """One line for each option: all of the help is to fit on a screen."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=27, width=118)


EXIT = f"exit status: {OK} the fleet agreed, {FAILED} it refused or can't be reached, {USAGE} wrong usage"


def run(arguments: argparse.Namespace) -> int:
    """0 when the fleet agreed, 1 when it refused or can't be reached, 2 for wrong usage."""
    given = {option: getattr(arguments, option) for option in OPTIONS}
    options = {option: str(value) for option, value in given.items() if value is not None}
    try:
        name, fields = read_words(arguments.words)
        check_options(name, options)
        if arguments.timeout is not None and name not in TIMEOUTS_S:
            raise Misused(f"'{name}' takes no --timeout")
    except Misused as error:
        print(f"hyper-proxy ctl: {error}", file=sys.stderr)
        return USAGE
    fields |= options
    admin = find_admin(arguments)
    timeout_s = arguments.timeout if arguments.timeout is not None else TIMEOUTS_S.get(name, 0.0)
    if name == WAITS:
        return _wait(admin, timeout_s, arguments.json)
    admin.expect_fleet()
    if name == UPGRADES:
        return _upgrade(admin, timeout_s, arguments.json)
    order = ORDERS[name]
    status, answer = admin.ask(order.method, order.path, fields)
    if name == HEALTH and status < 400 and not arguments.json:
        page = admin.ask("GET", "/", {"format": "json"})
        answer |= {"page": page[1]} if page[0] < 400 else {}
    _name(answer, admin)
    code = _print(name, status, answer, arguments.json)
    return FAILED if order.counts and not answer.get(order.counts) else code


def _name(answer: Answer, admin: Admin) -> None:
    if "fleet" in answer:
        print(f"fleet of {fleet_name(answer['fleet'])}, at {admin.address}", file=sys.stderr)


def _print(name: str, status: int, answer: Answer, as_json: bool) -> int:
    accepted = status < 400
    if as_json:
        text = pretty(answer)
    elif accepted or "reasons" in answer or "warnings" in answer:  # a refusal that has more to say than one line
        text = ORDERS[name].show(answer)
    else:
        text = str(answer.get("error", answer)) + (TOKEN_HINT if status == UNAUTHORIZED else "")
    print(text, file=sys.stdout if accepted or as_json else sys.stderr)
    return OK if accepted else FAILED


def _wait(admin: Admin, timeout_s: float, as_json: bool) -> int:
    """Asks until the fleet is ready, also one that is only about to start; then, or when time is up, says so."""
    deadline = time.monotonic() + timeout_s
    order = ORDERS[WAITS]
    while True:
        try:
            admin.expect_fleet()
            status, answer = admin.ask(order.method, order.path)
        except Unreachable:
            if time.monotonic() >= deadline:
                raise
        else:
            if status < 400 or time.monotonic() >= deadline:
                _name(answer, admin)
                return _print(WAITS, status, answer, as_json)
        time.sleep(POLL_S)


def _upgrade(admin: Admin, timeout_s: float, as_json: bool) -> int:
    """Orders it and waits until another master answers, or this one says why it goes on."""
    order = ORDERS[UPGRADES]
    before: Answer = admin.ask("GET", "/health/live")[1]["master"]
    status, answer = admin.ask(order.method, order.path)
    _name(answer, admin)
    if status >= 400:
        return _print(UPGRADES, status, answer, as_json)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        time.sleep(POLL_S)
        with suppress(Unreachable):  # between two sidecars
            master: Answer = admin.ask("GET", "/stats")[1].get("master", before)
            last = master["last_upgrade"]
            if last != before["last_upgrade"]:
                success = f"master {before['pid']} has handed over to master {master['pid']}"
                text = pretty(master) if as_json else success if last["ok"] else last["error"]
                print(text, file=sys.stdout if last["ok"] or as_json else sys.stderr)
                return OK if last["ok"] else FAILED
    print(f"no verdict within {timeout_s:g} s; ctl show events may say more", file=sys.stderr)
    return FAILED
