"""What happens to a fault in the proxy itself: it is shown with its traceback, counted, and costs one client."""

from __future__ import annotations

import sys

from gevent import get_hub


def show(where: object) -> None:
    """Print the exception that is being handled, with its traceback and where it happened, to standard error."""
    get_hub().handle_error(where, *sys.exc_info())
