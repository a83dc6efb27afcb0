"""Where a forked process becomes a worker. gevent comes first: what is imported before it is patched stays blocking."""

from __future__ import annotations

from hyper_proxy.common.birth import Birth
from hyper_proxy.config.model import Config


def main(birth: Birth, config: Config) -> int:
    """Lives a worker's life; returns the exit code of the process."""
    from gevent import config as gevent_config
    from gevent import monkey

    # The tree of who spawned whom would keep every ended greenlet's parents alive (gevent/gevent#1467).
    gevent_config.track_greenlet_tree = False
    monkey.patch_all()

    from hyper_proxy.engine import Engine
    from workers.life import Life

    return Life(birth, config).run(Engine)
