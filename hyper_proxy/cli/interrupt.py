"""Commands that last until somebody ends them."""

from __future__ import annotations

import signal


def by_ctrl_c_and_term() -> None:
    """INT and TERM raise KeyboardInterrupt from now on. What a script's shell puts into the background has INT ignored,
    and python would leave it so: then neither would end the command."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
