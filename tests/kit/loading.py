"""Real redis servers that take their time to load their keys from the disk, and say so."""

from __future__ import annotations

import subprocess

import redis

from tests.kit.servers import Running
from tests.kit.wait import wait_for

VALUE = "x" * 1100  # so that, not compressed, the server looks for requests at each key that it loads
SLOWLY = ["--loading-process-events-interval-bytes", "1024", "--key-load-delay", "50000"]  # microseconds for each key


def load_slowly(server: Running) -> None:
    """It keeps what it has, is killed and begins anew, and is in the middle of loading."""
    with redis.Redis(port=server.port) as client:
        client.save()
    server.kill()
    server.process = subprocess.Popen([*server.command, "--appendonly", "no", *SLOWLY])
    wait_for(lambda: is_loading(server), "it loads")


def is_loading(server: Running) -> bool:
    """Does it say so?"""
    try:
        return server.ask(b"PING\r\n").startswith(b"-LOADING")
    except OSError:  # it does not listen yet
        return False


def load_on(server: Running) -> None:
    """Let it load as fast as it can."""
    with redis.Redis(port=server.port) as client:
        client.config_set("key-load-delay", 0)
