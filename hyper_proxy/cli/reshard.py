"""hyper-proxy reshard -c FILE INSTANCE: move the keys that nobody asks for to their new homes, while the fleet serves.

Needs no fleet, only the servers and the file that the fleet has. A fleet of this file that answers is asked whether it
goes by it. This may be stopped at any moment and run again: what has moved is at home, and is passed by.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import time
from datetime import UTC, datetime
from types import FrameType

from hyper_proxy.cli.admin import find_admin
from hyper_proxy.cli.resharding.agreed import check_fleet
from hyper_proxy.cli.resharding.plan import Plan, Where, plan_of
from hyper_proxy.cli.resharding.walk import Pace, Tally, Walk
from hyper_proxy.config.model import Server
from hyper_proxy.conn_pool.moving.schedule import AFTER_S

FAILED = 1
STOPPED = 130  # as a shell says it of whom Ctrl-C has ended
TELL_S = 1.0
TIMEOUT_MS = 1000
MB = 1_000_000
ROUNDS = 3  # walks until one finds nothing left


class Stop(Exception):
    """Ctrl-C, or TERM."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """-c FILE [--rate N] [--max-mb-s N] [--timeout-ms N] [--json] INSTANCE"""
    parser.add_argument("-c", "--config", metavar="FILE", required=True, help="the configuration (toml)")
    parser.add_argument("--rate", type=_some, default=0, metavar="N", help="move at most N keys a second")
    parser.add_argument("--max-mb-s", type=_some, default=0, metavar="N", help="move at most N MB a second")
    parser.add_argument(
        "--timeout-ms", type=int, default=TIMEOUT_MS, metavar="N",
        help=f"how long a server may wait for another one, {TIMEOUT_MS} by default: more for very large keys",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print objects, one a line, instead of sentences")
    parser.add_argument("instance", metavar="INSTANCE", help="the name of an instance")


def _some(text: str) -> float:
    """So many a second."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0; without it nothing is held back")
    return number


class Teller:
    """Says what happens, to people or to programs; and ends the work when it is told to."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.stopped = False
        self.began = time.monotonic()
        self.next_at = self.began + TELL_S

    def stop(self, number: int, frame: FrameType | None) -> None:
        """The handler of the signals: the step that is under way is finished, but for who says so again: it may take
        long at a server that hangs, and does not matter, for the server finishes it alone."""
        if self.stopped:
            raise Stop
        self.stopped = True

    def pause(self, seconds: float) -> None:
        """Sleep, but not longer than until it is stopped."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.stopped:
                raise Stop
            time.sleep(min(left, 0.1))

    def walked(self, tally: Tally) -> None:
        """A step of a walk is done."""
        if self.stopped:
            raise Stop
        now = time.monotonic()
        if now >= self.next_at:
            self.next_at = now + TELL_S
            self.progress(tally)

    def progress(self, tally: Tally) -> None:
        """How far it is."""
        seconds = max(0.001, time.monotonic() - self.began)
        speed = tally.looked / seconds
        left_s = max(0, tally.total - tally.looked) / speed if speed else 0
        total = max(tally.total, tally.looked)
        self.say(
            f"{tally.looked} of {total} keys looked at, {tally.moved} moved ({tally.moved / seconds:.0f} a second, "
            f"{tally.size / MB / seconds:.2f} MB/s), at {tally.server}; about {left_s:.0f} s left",
            state="walking", looked=tally.looked, total=total, moved=tally.moved, bytes=tally.size,
            seconds=round(seconds, 3), left_s=round(left_s, 1), server=tally.server,
        )  # fmt: skip

    def say(self, sentence: str, **facts: object) -> None:
        """One thing, in one of the two forms."""
        print(json.dumps(facts) if self.as_json else sentence, flush=True)


def run(arguments: argparse.Namespace) -> int:
    """0: all keys are at home. 1: not yet, or keys stand where they would do harm. 130: it was stopped."""
    teller = Teller(arguments.json)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, teller.stop)
    plan = plan_of(arguments.config, arguments.instance)
    check_fleet(find_admin(arguments), plan)
    pace = Pace(arguments.rate, arguments.max_mb_s * MB, teller.pause)
    try:
        if plan.stage == 0:
            return _look_ahead(plan, Walk(plan, pace, arguments.timeout_ms, teller.walked), teller)
        return _move(plan, pace, arguments.timeout_ms, teller)
    except Stop:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        teller.say("stopped; all keys are whole and served. Run it again to go on.", state="stopped")
        return STOPPED


def _look_ahead(plan: Plan, walk: Walk, teller: Teller) -> int:
    """Before the move: what would go wrong?"""
    tally = walk.look()
    for label, seconds in walk.skews().items():
        teller.say(
            f"the clock of {label} is {abs(seconds):.1f} s {'behind' if seconds < 0 else 'ahead of'} this machine's: "
            f"requests wait {AFTER_S} s for all machines to begin, so their clocks may not differ by more",
            state="clock", server=label, seconds=round(seconds, 3),
        )  # fmt: skip
    begins = plan.schedule.moments[0]
    at = datetime.fromtimestamp(begins, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    teller.say(
        f"nothing is moved before {at}, in {begins - time.time():.0f} s. Keys are at `{plan.source.name}` until then: "
        f"{tally.seen[Where.LEFT]} of them will go to another server, {tally.seen[Where.HOME] - tally.to_light} stay",
        state="too early", begins=at, to_move=tally.seen[Where.LEFT], stay=tally.seen[Where.HOME] - tally.to_light,
        to_light=tally.to_light,
    )  # fmt: skip
    if tally.to_light:
        teller.say(
            f"{tally.to_light} keys stand at servers of `{plan.target.name}` where nobody looks for them now: "
            "what was deleted long ago will be there again. Delete them from these servers before the move begins",
            state="strays", count=tally.to_light,
        )  # fmt: skip
    return FAILED


def _move(plan: Plan, pace: Pace, timeout_ms: int, teller: Teller) -> int:
    moved = 0
    for _ in range(ROUNDS):
        teller.began = time.monotonic()
        tally = Walk(plan, pace, timeout_ms, teller.walked).move()
        moved += tally.moved
        teller.progress(tally)
        found = Walk(plan, pace, timeout_ms, teller.walked).look()
        if not found.seen[Where.LEFT]:
            return _end(plan, moved, found, teller)
    shown = ", ".join(found.examples[Where.LEFT])
    teller.say(
        f"{found.seen[Where.LEFT]} keys are at their old homes again ({shown}): somebody writes there who knows "
        "nothing of the move. Do all fleets have this file, and all machines the same time?",
        state="left", left=found.seen[Where.LEFT], moved=moved, examples=found.examples[Where.LEFT],
    )  # fmt: skip
    return FAILED


def _end(plan: Plan, moved: int, found: Tally, teller: Teller) -> int:
    strays = found.seen[Where.STRAY]
    home = found.seen[Where.HOME]
    teller.say(
        f"all {home} keys are at their homes in `{plan.target.name}`; {moved} were moved by this run",
        state="done", keys=home, moved=moved, strays=strays, examples=found.examples.get(Where.STRAY, []),
    )  # fmt: skip
    if strays and not teller.as_json:
        shown = ", ".join(found.examples[Where.STRAY])
        print(f"{strays} other keys are at servers where nobody has looked for them before or does now ({shown})")
    if not teller.as_json:
        print("\n".join(["Write into the level, without the route and the pool, and reload:", *_lines(plan)]))
    return os.EX_OK


def _entry(server: Server) -> str:
    weight = f":{server.weight}" if server.weight != 1 else ""
    return f'"{server.address}{weight}{f" {server.name}" if server.name else ""}"'


def _lines(plan: Plan) -> list[str]:
    """The level as it is from now on."""
    level = plan.level.pool_levels()[plan.target.name]
    lines = [f"  servers = [{', '.join(_entry(server) for server in level.servers)}]"]
    if level.distribution != plan.level.distribution:
        lines.append(f'  distribution = "{level.distribution}"')
    if level.hash != plan.level.hash:
        lines.append(f'  hash = "{level.hash}"')
    return lines
