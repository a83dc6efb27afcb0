"""Storages that wait in their threads: for programs, for which gevent alone could not wait there, and for sockets."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import redis

from tests.kit.ports import free_port
from tests.plugins.conftest import Start
from tests.plugins.texts import config, instance

SHELL = '''
import os
import subprocess
from hyper_proxy import plugin


@plugin.storage("shell", files=True)
class Shell(plugin.ReadOnly):
    """The value of a key is what the shell makes of it, and how it has ended."""

    def __init__(self, server, level):
        pass

    def get_many(self, keys):
        return [plugin.Item(self._run(key), 0, None, 0) for key in keys]

    def _run(self, key):
        if key.startswith(b"popen "):
            with os.popen(key[6:].decode()) as pipe:
                return pipe.read().encode()
        try:
            done = subprocess.run(["sh", "-c", key], input=b"heard", stdout=subprocess.PIPE, timeout=1)
        except subprocess.TimeoutExpired:
            return b"late"
        return b"%b %d" % (done.stdout, done.returncode)

    def count(self):
        return 0

    def scan(self, cursor, limit):
        return 0, []
'''

SAYS = {
    "cat": b"heard 0",
    "echo said; exit 3": b"said\n 3",
    "kill -9 $$": b" -9",
    "exec sleep 30": b"late",
    "popen echo read": b"read\n",
}


def test_a_storage_may_run_programs(start: Start, folder: Path) -> None:
    (folder / "shell.py").write_text(SHELL)
    port = free_port()
    fleet = start(config(["shell.py"], instance("redis", port, "shell", ["x"], "timeout = { read_ms = 9000 }")))
    (pid,) = fleet.worker_pids()
    with redis.Redis(port=port) as client, ThreadPoolExecutor(8) as many:
        for _ in range(2):
            words = [word for word in SAYS if word != "exec sleep 30"] * 8
            assert list(many.map(client.get, words)) == [SAYS[word] for word in words]
        used = psutil.Process(pid).num_fds()
        for word, said in SAYS.items():
            assert client.get(word) == said
        assert psutil.Process(pid).num_fds() <= used
    assert [child.name() for child in psutil.Process(pid).children()] == [], "none is left behind"
    assert fleet.worker_pids() == [pid]
    assert "plugin.failed" not in fleet.read_log()


ECHOING = """
import socket
import threading
from hyper_proxy import plugin


@plugin.storage("echoing", files=True)
class Echoing(plugin.ReadOnly):
    def __init__(self, server, level):
        self.own = threading.local()
        self.lock = threading.Lock()
        self.asked = 0

    def get_many(self, keys):
        if not hasattr(self.own, "ends"):
            self.own.ends = socket.socketpair()
        with self.lock:
            self.asked += 1
        near, far = self.own.ends
        near.sendall(keys[0])
        return [plugin.Item(far.recv(100), 0, None, 0)] + [None for key in keys[1:]]

    def count(self):
        return self.asked

    def scan(self, cursor, limit):
        return 0, []
"""


def test_each_thread_of_a_storage_may_keep_a_connection_of_its_own(start: Start, folder: Path) -> None:
    (folder / "echoing.py").write_text(ECHOING)
    port = free_port()
    fleet = start(config(["echoing.py"], instance("redis", port, "echoing", ["x"], "timeout = { read_ms = 9000 }")))
    keys = [f"key {number}" for number in range(400)]
    with redis.Redis(port=port) as client, ThreadPoolExecutor(16) as many:
        assert list(many.map(client.get, keys)) == [key.encode() for key in keys]
        assert client.dbsize() == len(keys)
    assert "plugin.failed" not in fleet.read_log()
