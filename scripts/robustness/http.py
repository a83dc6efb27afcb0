"""scripts/verify_http: schemathesis makes requests of the OpenAPI document that the HTTP front serves, right and wrong
ones, and looks at the answers: status, type and body must be what the document says, and nothing may fail.

Once over one level, once over a cache above a file. Prints its summaries; exit status 1 when it has found something.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.servers import redis_server

FILE = '[[instance.level]]\nstorage = "sqlite"\nservers = ["keys.db"]\n'
CACHE = '[[instance.level]]\nstorage = "redis"\nservers = ["{address}"]\n'

# Whether If-Match names the value that is there can't be seen in a request: 412 is a right answer to a right one.
RULES = """[checks.positive_data_acceptance]
expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "412", "429", "5xx"]
"""


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/verify_http", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("--program", required=True, help="schemathesis")
    parser.add_argument("--examples", type=int, default=200, help="for each operation (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="of its dice (default 1)")
    return parser.parse_args()


def summary(text: str) -> str:
    """Of what it prints, how many requests it has made."""
    return text.rpartition("Test cases:")[2].strip().partition("\n")[0].strip()


def check(name: str, levels: str, given: argparse.Namespace, folder: Path) -> bool:
    """One front over these levels: is nothing wrong with it?"""
    port = free_port()
    text = f'[[instance]]\nname = "store"\nprotocol = "http"\nlisten = ["127.0.0.1:{port}"]\n{levels}'
    rules = folder / "schemathesis.toml"
    rules.write_text(RULES)
    document = f"http://127.0.0.1:{port}/v1/openapi.json"
    more = ["--max-examples", str(given.examples), "--seed", str(given.seed)]
    command = [given.program, "--config-file", str(rules), "run", document, *more]
    with Fleet(text, folder) as fleet:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        faults = sum(row["faults"] for row in fleet.stats()["workers"])
    well = done.returncode == 0 and faults == 0
    print(f"{name}: requests: {summary(done.stdout)}, faults of workers: {faults}", flush=True)
    if not well:
        print(done.stdout + done.stderr, flush=True)
    return well


def main() -> int:
    """Status 1 when something was found."""
    given = options()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("one", "two"):
            (folder / name).mkdir()
        cache = CACHE.format(address=stack.enter_context(redis_server()).address)
        well = check("sqlite", FILE, given, folder / "one")
        well = check("redis, sqlite", cache + FILE, given, folder / "two") and well
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
