"""hyper-proxy serve [-c FILE | --data DIR]: the fleet, in the foreground.

The only place that knows both the master and what its children run. Those are imported in the children, after the
fork: the master must have neither gevent nor flask, and what it does not import it does not pass on.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

from hyper_proxy.apart import inspect_apart
from hyper_proxy.common.birth import Birth
from hyper_proxy.common.errors import ConfigError
from hyper_proxy.config.load import embedded_default
from hyper_proxy.config.model import Config
from supervisor.estate import Estate, EstateError, claim_estate
from supervisor.master import Crew
from supervisor.start import run as run_master
from supervisor.validate import digest_of

DATA_FOLDER = "hyper_proxy"
# Whoever has the sidecar's address may be no sidecar, and silent.
ANSWER_S = 1.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[-c FILE | FILE | --data DIR]"""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("file", metavar="FILE", nargs="?", type=_named, help="the same as -c FILE")
    which.add_argument(
        "-c", "--config", metavar="FILE", type=_named, help="the configuration; without it, the embedded default"
    )
    which.add_argument(
        "--data",
        metavar="DIR",
        type=_named,
        help="where the embedded default keeps its database: $XDG_STATE_HOME/hyper_proxy, else ./hyper_proxy-data",
    )


def _named(text: str) -> str:
    """Not "", which is what a shell makes of a variable that nobody has set: that asks for no embedded default."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: is a variable not set?")
    return text


def run(arguments: argparse.Namespace) -> int:
    """0 after a stop that was asked for, else an exit code of docs/operations.md. Raises ConfigError: that is 78."""
    crew = Crew(worker=enter_worker, sidecar=enter_sidecar)
    try:
        estate = claim_estate(os.environ)
    except EstateError as error:
        print(f"hyper-proxy: {error}", file=sys.stderr)
        return os.EX_SOFTWARE
    file = arguments.config or arguments.file
    if file is None:
        return serve_embedded(Path(arguments.data) if arguments.data else default_data_folder(), crew, estate)
    digest = digest_of(file)
    config, findings = inspect_apart(file)
    if config is None:
        if estate is not None:
            estate.decline("\n".join(str(finding) for finding in findings if finding.level == "error"))
        raise ConfigError(findings)
    return run_master(config, digest, crew, who_answers, findings, estate)


def serve_embedded(folder: Path, crew: Crew, estate: Estate | None) -> int:
    """The embedded default with its database in `folder`, which is made, and is gone again if nothing came of it."""
    there = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return _no_folder(f"cannot make the data folder {folder}: {error.strerror}")
    if not os.access(folder, os.W_OK | os.X_OK):
        return _no_folder(f"this user may not write into the data folder {folder}")
    code = run_master(embedded_default(str(folder)), "", crew, who_answers, estate=estate)
    if code != os.EX_OK and not there:
        with suppress(OSError):  # not empty: something is kept there
            folder.rmdir()
    return code


def _no_folder(why: str) -> int:
    print(f"hyper-proxy: {why}; use --data DIR", file=sys.stderr)
    return os.EX_OSERR


def default_data_folder() -> Path:
    """Where state belongs by the XDG base directory specification; beside the caller when that is not set."""
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state) / DATA_FOLDER if state else Path("hyper_proxy-data")


def who_answers(config: Config) -> str:
    """Which fleet answers where the sidecar of this configuration would, and what to do; "" when none does."""
    from hyper_proxy.cli.admin import Admin, Unreachable, fleet_name

    try:
        answer = Admin(config.admin.address).ask("GET", "/health/live", timeout_s=ANSWER_S)[1]
    except Unreachable:
        return ""
    if not isinstance(answer, dict) or "fleet" not in answer:
        return ""
    fleet = answer["fleet"]
    if config.path and os.path.realpath(fleet["file"]) == os.path.realpath(config.path):
        reload = f"`hyper-proxy ctl -c {config.path} reload`"
        return f"The fleet of this file runs already (master {fleet['master']}): {reload} has it read the file again"
    two = "two fleets take two [admin] listen, each in its own file"
    if not config.path:
        two += ": write one for this one (etc/minimal.toml is the shortest) and start it with -c FILE"
    return f"The fleet of {fleet_name(fleet)} answers there: {two}"


def enter_worker(birth: Birth, config: Config) -> int:
    """A worker's life, in the forked child."""
    from workers.main import main

    return main(birth, config)


def enter_sidecar(pipe_fd: int, listen_fd: int, host: str) -> int:
    """The sidecar's life, in the forked child."""
    from supervisor.sidecar.main import main

    return main(pipe_fd, listen_fd, host)
