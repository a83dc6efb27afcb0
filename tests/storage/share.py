"""One of several worker processes that share a file: adds to one key, and prints the versions that its writes got.

    python -m tests.storage.share FILE TIMES
"""

from __future__ import annotations

import sys

from hyper_proxy.storage.keyvalue import Item, Put, replaced
from hyper_proxy.storage.sqlite import SqliteStorage


def add_one(items: list[Item | None]) -> tuple[list[Put], None]:
    value = items[0].value if items[0] else b"0"
    return [replaced(items[0], b"%d" % (int(value) + 1))], None


def main(path: str, times: int) -> None:
    storage = SqliteStorage("user", path, lock_s=30)
    storage.open()
    for _ in range(times):
        print(storage.update([b"shared"], add_one)[1][0])
    storage.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
