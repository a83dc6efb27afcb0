"""Where a forked process becomes a worker. gevent comes first: what is imported before it is patched stays blocking."""

from __future__ import annotations

import os
from collections.abc import Callable

from hyper_proxy.common.birth import Birth
from hyper_proxy.common.frames import encode_frame
from hyper_proxy.config.model import Config
from workers.fault import unforeseen


def main(birth: Birth, config: Config) -> int:
    """Lives a worker's life; returns the exit code of the process."""
    try:
        live = _load()
    except BaseException as error:  # nothing is there yet by which Life would tell it
        os.write(birth.pipe_fd, encode_frame({"type": "failed", "error": unforeseen(error)}))
        raise
    return live(birth, config)


def _load() -> Callable[[Birth, Config], int]:
    """All that a worker imports."""
    from gevent import config as gevent_config
    from gevent import monkey

    # The tree of who spawned whom would keep every ended greenlet's parents alive (gevent/gevent#1467).
    gevent_config.track_greenlet_tree = False
    monkey.patch_all()

    from hyper_proxy.engine import Engine
    from workers.life import Life

    return lambda birth, config: Life(birth, config).run(Engine)
