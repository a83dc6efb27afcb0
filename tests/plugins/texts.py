"""Configurations and plug-ins of these tests, as texts."""

from __future__ import annotations

from collections.abc import Sequence

from tests.kit.key_values import sqlite_level


def config(plugins: Sequence[str], *instances: str, proxy: str = "", workers: int = 1) -> str:
    """A file with these plug-ins and instances."""
    listed = ", ".join(f'"{name}"' for name in plugins)
    head = f"[proxy]\nplugins = [{listed}]\nworkers = {workers}\ndrain_timeout_s = 0.5\n{proxy}\n"
    return head + "".join(instances)


def instance(protocol: str, port: int, storage: str = "sqlite", servers: Sequence[str] = ("keys.db",), more: str = "",
             limits: str = "") -> str:
    """One instance of one level; `more` are lines of the level."""
    listed = ", ".join(f'"{name}"' for name in servers)
    level = f'  [[instance.level]]\n  storage = "{storage}"\n  servers = [{listed}]\n'
    return f"""
[[instance]]
name = "{protocol}{port}"
protocol = "{protocol}"
listen = ["127.0.0.1:{port}"]
  [instance.limits]
  {limits}
{sqlite_level(*servers) if storage == "sqlite" else level}  {more}
"""


ECHO = '''"""Answers each line with itself; `fault` says what goes wrong instead."""

import time
import gevent
from hyper_proxy import plugin


@plugin.protocol("echo")
class Echo(plugin.Protocol):
    def unserialize(self, buffer, start):
        end = buffer.find(b"\\n", start)
        if end < 0:
            return None
        line = buffer[start:end]
        if line == b"lost":
            raise ValueError("where does this end?")
        if line == b"malformed":
            raise plugin.ClientError("this is no request")
        if line == b"behind":
            return plugin.Request("behind"), len(buffer) + 1
        return plugin.Request("echo", keys=(line,), content=line), end + 1

    def split(self, request):
        if request.content == b"split":
            raise KeyError("split")
        return 7 if request.content == b"seven" else [request.content]

    def map(self, storage, part):
        if part == b"map":
            return {}["map"]
        if part == b"exit":
            raise SystemExit("exit")
        if part == b"greenlet":
            raise gevent.GreenletExit
        if part == b"late":
            raise gevent.Timeout(5)
        if part == b"doze":
            time.sleep(2)
        if part == b"spin":
            while True:
                pass
        return part

    def reduce(self, request, results):
        return results[5] if request.content == b"reduce" else results[0]

    def serialize(self, reply):
        return "text" if reply == b"text" else reply + b"\\n"

    def refuse(self, error):
        return f"! {error.kind}: {error}\\n".encode()
'''
