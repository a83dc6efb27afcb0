"""hyper-proxy import FORMAT FILE: the configuration of another proxy, as one of this proxy with the same key placement.

What is written has passed `check`; its warnings go to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from hyper_proxy.cli.nutcracker_read import read_pools
from hyper_proxy.cli.nutcracker_write import write_toml
from hyper_proxy.common.errors import ConfigError, Finding
from hyper_proxy.config.load import inspect_text, read_text


def nutcracker(text: str, file: str) -> str:
    """twemproxy's YAML as toml; raises ConfigError with the lines of the YAML."""
    return write_toml(read_pools(text, file), file)


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file that can be imported: `convert` makes toml of its text (and its name, for messages)."""

    convert: Callable[[str, str], str]
    help: str


FORMATS: dict[str, Format] = {"nutcracker": Format(nutcracker, "twemproxy's YAML file, all pools")}
OTHER_NAMES = {"twemproxy": "nutcracker"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FORMAT FILE [-o OUT [--force]]"""
    parser.epilog = "What to write in the place of a file of mcrouter is told in docs/migrating.md."
    known = "; ".join(f"{name}: {row.help}" for name, row in FORMATS.items())
    parser.add_argument("format", metavar="FORMAT", type=_own_name, choices=FORMATS, help=known)
    parser.add_argument("file", metavar="FILE", help="the file to read, or a pipe")
    parser.add_argument("-o", "--output", metavar="OUT", help="a new file to write; without it, standard output")
    parser.add_argument("--force", action="store_true", help="OUT may be there already: it is overwritten")


def _own_name(word: str) -> str:
    return OTHER_NAMES.get(word, word)


def run(arguments: argparse.Namespace) -> int:
    """0 when the result was written, 71 when it could not be; raises ConfigError for a file that cannot be imported."""
    text = FORMATS[arguments.format].convert(read_text(arguments.file, once=True), arguments.file)
    target = arguments.output or "standard output"
    config, findings = inspect_text(text, target)
    for finding in findings:
        print(finding, file=sys.stderr)
    if config is None:
        message = f"twemproxy accepts this, but what became of it has the errors above (lines of {target})"
        raise ConfigError([Finding(arguments.file, 1, "error", "HP207", message)])
    if not arguments.output:
        sys.stdout.write(text)
        return os.EX_OK
    try:
        with open(arguments.output, "w" if arguments.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        print(f"{arguments.output}: is there already; --force overwrites it", file=sys.stderr)
        return os.EX_OSERR
    except OSError as error:
        print(f"{arguments.output}: cannot be written: {error.strerror}", file=sys.stderr)
        return os.EX_OSERR
    return os.EX_OK
