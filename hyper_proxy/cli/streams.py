"""The standard streams of the command: one may be closed (`>&-`), full (`>/dev/full`) or without reader (`| head`)."""

from __future__ import annotations

import errno
import os
import sys

_NAMES = ("stdin", "stdout", "stderr")


def open_missing() -> None:
    """Open what is closed on nothing: or the next file or socket gets its number, and is written to as the log."""
    for number, name in enumerate(_NAMES):
        if getattr(sys, name) is None:
            # The lowest number that is free is this one, for those below are open.
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), "w" if number else "r"))  # noqa: SIM115


def give_up(error: OSError) -> str:
    """What the user is told when the output took no more, "" when nobody reads it. Raises an error of anything else."""
    try:
        print(flush=True)  # an output at fault refuses this as well
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # where the interpreter flushes to at its end
        return "" if error.errno == errno.EPIPE else f"the output is not complete: {error.strerror}"
    raise error
