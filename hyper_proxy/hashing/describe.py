"""The tables of docs/hashing.md, made from the tables of the code.

    python -m hyper_proxy.hashing.describe docs/hashing.md     rewrites what stands between the two marks in that file
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hyper_proxy.hashing.tables import DISTRIBUTIONS, HASHES, DistributionRow

BEGIN = "<!-- begin of the generated tables -->"
END = "<!-- end of the generated tables -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table."""
    cells = [[text.replace("|", "\\|") for text in row] for row in (head, *rows)]
    cells.insert(1, ["---"] * len(head))
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


def by(row: DistributionRow) -> str:
    """What a distribution looks at besides the key."""
    return ("names" if row.names else "order") + (", weights" if row.weights else "")


def tables() -> str:
    """Both tables, as they stand in the document."""
    hashes = table(
        ("hash", "what it is", "bits"),
        [(f"`{name}{row.options}`", row.help, str(row.bits)) for name, row in HASHES.items()],
    )
    distributions = table(
        ("distribution", "what it is", "hash by default", "servers by"),
        [
            (f"`{name}{row.options}`", row.help, f"`{row.hash}`" if row.hash else "its own; `hash` is ignored", by(row))
            for name, row in DISTRIBUTIONS.items()
        ],
    )
    return f"### Hashes\n\n{hashes}\n### Distributions\n\n{distributions}"


def updated(document: str) -> str:
    """The document with the tables as they are now."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def main(path: str) -> None:
    """Rewrite the tables in a file."""
    file = Path(path)
    file.write_text(updated(file.read_text()))


if __name__ == "__main__":
    main(sys.argv[1])
