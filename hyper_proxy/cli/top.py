"""hyper-proxy top [-c FILE | --admin ADDRESS] [--once [--json]]: what the fleet does now, second by second.

Reads the sidecar's /stats and changes nothing. Without a terminal it prints once, as with --once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time

from rich.console import Console
from rich.live import Live

from hyper_proxy.cli import admin as sidecar
from hyper_proxy.cli.interrupt import by_ctrl_c_and_term
from hyper_proxy.cli.live.keys import Keyboard, press
from hyper_proxy.cli.live.screen import Choice, draw
from hyper_proxy.cli.live.source import Source

OK = 0
INTERVAL_S, SHORTEST_S = 1.0, 0.1
PRINT_COLUMNS = 160
"""Of what is printed into a file or a pipe, which has no width."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[-c FILE | --admin ADDRESS] [--interval S] [--once] [--json]"""
    sidecar.add_arguments(parser)
    parser.add_argument(
        "--interval", type=sidecar.seconds(SHORTEST_S), default=INTERVAL_S, metavar="S", help="between readings (1)"
    )
    parser.add_argument("--once", action="store_true", help="print what happens within one interval, and end")
    parser.add_argument("--json", action="store_true", help="the same as numbers; implies --once")


def run(arguments: argparse.Namespace) -> int:
    """0 when it was ended by q, Ctrl-C or TERM, or has printed; 1 (Unreachable) when there is no fleet at the start."""
    source = Source(sidecar.find_admin(arguments))
    by_ctrl_c_and_term()  # the terminal is to be as it was, whoever ends us
    try:
        source.read_first()
        if arguments.once or arguments.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_once(source, arguments.interval, arguments.json)
        else:
            _watch(source, arguments.interval)
    except KeyboardInterrupt:
        pass
    return OK


def _print_once(source: Source, interval_s: float, as_json: bool) -> None:
    """Raises Unreachable when the fleet does not answer the second time, either."""
    time.sleep(interval_s)
    source.read()
    while source.figures is None:  # another fleet has taken its place: what it does is seen from now on
        if source.trouble:
            raise sidecar.Unreachable(source.trouble)
        time.sleep(interval_s)
        source.read()
    if as_json:
        print(json.dumps(source.figures, indent=2))
    else:
        width = None if sys.stdout.isatty() else PRINT_COLUMNS
        console = Console(width=width, highlight=False)
        console.print(draw(source, Choice(), console.width, _is_plain(console)))


def _watch(source: Source, interval_s: float) -> None:
    console = Console(highlight=False)
    choice = Choice()
    with Keyboard() as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
        due = time.monotonic() + interval_s
        while True:
            live.update(draw(source, choice, console.width, _is_plain(console)), refresh=True)
            for key in keyboard.wait(due - time.monotonic()):
                if not press(choice, key):
                    return
            if time.monotonic() >= due:
                due = time.monotonic() + interval_s
                if not choice.frozen:
                    source.read(with_slowlog=choice.view == "s")


def _is_plain(console: Console) -> bool:
    return not console.encoding.lower().startswith("utf")
