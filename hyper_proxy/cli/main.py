"""The command `hyper-proxy`: finds the verb in the table, imports its file, runs it.

Only the file of the verb asked for is imported: `check` does not pay for the fleet, and the supervisor stays small.
Exit status: 0 done, 1 failed, 2 wrong usage; of some verbs 3 no worker could start, 70 what the running master has
left to an upgrade can't be read, 71 the system refused (bind, fork, file), 77 the fleet may not become its user, 78 a
configuration with errors, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, cast

from hyper_proxy import __version__
from hyper_proxy.cli.streams import give_up, open_missing
from hyper_proxy.common.errors import ConfigError, HyperProxyError
from hyper_proxy.common.plugin_error import PluginError
from hyper_proxy.config.notes import suggest

PROGRAM = "hyper-proxy"
FAILED = 1
USAGE = 2


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: the module that implements it, and one line of help."""

    module: str
    help: str


VERBS: dict[str, Verb] = {
    "serve": Verb("hyper_proxy.cli.serve", "run the fleet, in the foreground"),
    "ctl": Verb("hyper_proxy.cli.ctl", "talk to the running fleet: reload, show, drain, stop"),
    "top": Verb("hyper_proxy.cli.top", "watch the running fleet: rates, latencies, workers, servers"),
    "check": Verb("hyper_proxy.cli.check", "list everything that is wrong with a configuration file"),
    "explain": Verb("hyper_proxy.cli.explain", "say where a request would go, and why; sends nothing"),
    "reshard": Verb("hyper_proxy.cli.reshard", "move keys to their new servers while the fleet serves them"),
    "demo": Verb("hyper_proxy.cli.demo", "a fleet on embedded storage, to try: nothing to install or configure"),
    "import": Verb("hyper_proxy.cli.importing", "turn another proxy's configuration into one of the same placement"),
}


class VerbModule(Protocol):
    """What the file of a verb defines."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declares the verb's arguments."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Does it; returns the exit status. Errors of this project may be raised: main() words them."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; returns the exit status. Wrong usage ends in SystemExit, as argparse does it."""
    open_missing()
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return status
    except OSError as error:
        if told := give_up(error):
            print(f"{PROGRAM}: {told}", file=sys.stderr)
        return FAILED


def _run(words: list[str]) -> int:
    arguments = _parser().parse_args(words[:1])
    verb = VERBS[arguments.verb]
    module = cast(VerbModule, importlib.import_module(verb.module))
    parser = argparse.ArgumentParser(f"{PROGRAM} {arguments.verb}", description=f"{verb.help}.")
    module.add_arguments(parser)
    try:
        return module.run(parser.parse_args(words[1:]))
    except ConfigError as error:
        print(error, file=sys.stderr)
        return os.EX_CONFIG
    except PluginError as error:
        print(f"{PROGRAM}: {error.in_full}", file=sys.stderr)
        return FAILED
    except HyperProxyError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return FAILED


ELSEWHERE = {
    "start": "serve", "run": "serve", "restart": "ctl upgrade", "status": "ctl health", "test": "check",
    "validate": "check", "help": "--help", "version": "--version",
}  # fmt: skip
"""What other programs call it."""


def _verb(word: str) -> str:
    if word not in VERBS:
        raise argparse.ArgumentTypeError(f"there is no verb '{word}'{_meant(word)}")
    return word


def _meant(word: str) -> str:
    """What may have been meant; the verbs of ctl, too, are in its own file, which a right word does not load."""
    from hyper_proxy.cli.ctl_orders import ORDERS

    shown = {name.removeprefix("show "): f"ctl {name}" for name in ORDERS if name.startswith("show ")}
    return suggest(word, VERBS, {name: f"ctl {name}" for name in ORDERS} | shown | ELSEWHERE)


class _Version(argparse.Action):
    """--version: the release, and whether the hot loops run compiled; looks at the files only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        from hyper_proxy.build import state

        print(f"{PROGRAM} {__version__}, {state()}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """Whoever names no verb, or none that there is, is shown all of them."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{PROGRAM}: {message}\n\n{self.epilog}\n")


def _parser() -> argparse.ArgumentParser:
    width = max(map(len, VERBS))
    lines = [f"  {name:{width}}  {verb.help}" for name, verb in VERBS.items()]
    parser = _Parser(
        PROGRAM,
        usage=f"{PROGRAM} VERB [arguments]",
        description="A proxy fleet between applications and their storage.",
        epilog="verbs:\n" + "\n".join([*lines, "", f"{PROGRAM} VERB --help explains each of them."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print it, and whether the hot loops are compiled")
    parser.add_argument("verb", metavar="VERB", type=_verb, help="what to do")
    return parser


if __name__ == "__main__":
    sys.exit(main())
