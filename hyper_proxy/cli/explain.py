"""hyper-proxy explain -c FILE [--json] INSTANCE COMMAND [ARG...]: where a request would go, and why; sends nothing."""

from __future__ import annotations

import argparse
import json
import os
import sys

from hyper_proxy.apart import prints_aside
from hyper_proxy.config.load import load
from hyper_proxy.explain import as_json, as_text, explain
from hyper_proxy.protocol.explanation import BadQuestion

USAGE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """-c FILE [--json] INSTANCE COMMAND [ARG...]"""
    parser.usage = "hyper-proxy explain -c FILE [--json] INSTANCE COMMAND [ARG...]"
    parser.add_argument("-c", "--config", metavar="FILE", required=True, help="the configuration (toml)")
    parser.add_argument("--json", action="store_true", help="print one object instead of lines")
    parser.add_argument("instance", metavar="INSTANCE", help="the name of an instance")
    parser.add_argument(
        "words", metavar="COMMAND [ARG...]", nargs=argparse.REMAINDER,
        help="the request, word by word; of memcache its first line: set KEY FLAGS EXPTIME BYTES; of http "
        "GET /v1/INSTANCE/KEY, GET KEY, or MGET KEY ... for POST /v1/INSTANCE/_mget",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """0 when the request is explained, served or not; 2 when it is none. Raises ConfigError for a faulty file."""
    try:
        with prints_aside():
            config = load(arguments.config)
            explanation = explain(config, arguments.instance, [os.fsencode(word) for word in arguments.words])
    except BadQuestion as error:
        print(f"hyper-proxy explain: {error}", file=sys.stderr)
        return USAGE
    print(json.dumps(as_json(explanation), indent=2) if arguments.json else as_text(explanation))
    return os.EX_OK
