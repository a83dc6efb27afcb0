"""Where a forked process becomes the sidecar. gevent comes first: what is imported earlier stays blocking."""

from __future__ import annotations


def main(pipe_fd: int, listen_fd: int, host: str) -> int:
    """Serves the sidecar's socket until the master ends; returns the exit code of the process."""
    from gevent import monkey

    monkey.patch_all()

    from supervisor.sidecar.service import serve

    return serve(pipe_fd, listen_fd, host)
