"""hyper-proxy check FILE...: every finding about configuration files, as people or as programs read them.

Opens nothing but the files, resolves no names, binds no ports.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from hyper_proxy.apart import inspect_apart
from hyper_proxy.common.errors import Finding
from hyper_proxy.config.codes import ERROR, WARNING


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE... [--json]"""
    parser.add_argument("-c", "--config", action="store_true", help="may stand before FILE, as with the other verbs")
    parser.add_argument("files", metavar="FILE", nargs="+", help="a configuration file (toml), or a pipe")
    parser.add_argument("--json", action="store_true", help="print one list of objects instead of lines")


def run(arguments: argparse.Namespace) -> int:
    """0 when the files can be used, warnings or not; 78 when one of them cannot."""
    findings = []
    for file in arguments.files:
        config, found = inspect_apart(file, once=True)
        findings += found
        if not arguments.json:
            for finding in found:
                print(finding)
            if found:
                print(f"{count(found)} in {file}", file=sys.stderr)
            if config is not None:
                print(f"{file}: ok, {len(config.instances)} instance(s)")
    if arguments.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    return os.EX_CONFIG if any(finding.level == ERROR for finding in findings) else os.EX_OK


def count(findings: Sequence[Finding]) -> str:
    """ "2 errors, 1 warning"."""
    parts = []
    for level in (ERROR, WARNING):
        number = sum(finding.level == level for finding in findings)
        if number:
            parts.append(f"{number} {level}{'s' if number > 1 else ''}")
    return ", ".join(parts)
