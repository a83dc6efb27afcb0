"""Let everybody else run once.

gevent.sleep(0) is not enough: gevent runs up to fifty callbacks before it looks at the clock, and what is resumed by
callbacks again and again can keep the event loop from its sockets for a tenth of a second.
"""

from __future__ import annotations

from gevent import get_hub
from greenlet import getcurrent


def let_others_run() -> None:
    """Return after the event loop has gone round: it has looked at all sockets and timers, without waiting for any."""
    hub = get_hub()
    waker = hub.loop.async_()
    waker.start(getcurrent().switch)
    try:
        waker.send()
        hub.switch()
    finally:
        waker.close()
