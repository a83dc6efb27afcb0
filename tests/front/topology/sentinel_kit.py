"""Real sentinels that watch real masters with replicas."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import redis

from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

DOWN_AFTER_MS = 500


def replicated(folder: Path, *options: str) -> Running:
    """A redis-server that may be copied to others: what it keeps of that on disk is its own."""
    home = tempfile.mkdtemp(dir=folder)
    more = ("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
    return redis_server("--dir", home, *more, *options)


@dataclass(frozen=True)
class Secrets:
    """What the masters and replicas ask for, what the sentinels ask for, and a further user of these."""

    password: str = ""
    sentinels: str = ""
    user: str = ""


OPEN = Secrets()


class Watched:
    """A master of this name with replicas; which one is the master changes."""

    def __init__(self, stack: ExitStack, folder: Path, name: str, replicas: int, password: str) -> None:
        self.name = name
        options = ("--requirepass", password, "--masterauth", password) if password else ()
        self.servers = [stack.enter_context(replicated(folder, *options)) for _ in range(1 + replicas)]
        asked = [redis.Redis(port=one.port, password=password or None) for one in self.servers]
        self.clients = {one.port: stack.enter_context(it) for one, it in zip(self.servers, asked, strict=True)}
        for one in self.servers[1:]:
            self.clients[one.port].replicaof("127.0.0.1", self.servers[0].port)
        wait_for(lambda: all(self.is_linked(one) for one in self.servers[1:]), "the replicas follow", 20)

    def is_linked(self, server: Running) -> bool:
        """Is it an up to date replica?"""
        return bool(self.clients[server.port].info("replication").get("master_link_status") == "up")

    def client(self, server: Running) -> Any:
        """Of this server alone."""
        return self.clients[server.port]


class Sentinels:
    """Some sentinels, of which two must agree."""

    def __init__(
        self, folder: Path, names: tuple[str, ...], replicas: int, down_after_ms: int, sentinels: int = 3,
        secrets: Secrets = OPEN,
    ) -> None:  # fmt: skip
        self.secrets = secrets
        self.down_after_ms = down_after_ms
        self.stack = ExitStack()
        self.watched = {name: Watched(self.stack, folder, name, replicas, secrets.password) for name in names}
        self.sentinels = [self._sentinel(folder) for _ in range(sentinels)]
        password = secrets.sentinels or None
        asked = [redis.Redis(port=one.port, decode_responses=True, password=password) for one in self.sentinels]
        self.clients = [self.stack.enter_context(client) for client in asked]
        wait_for(lambda: all(self.knows(client) for client in self.clients), "all sentinels know each other", 20)

    def _sentinel(self, folder: Path) -> Running:
        port = free_port()
        file = folder / f"sentinel-{port}.conf"
        lines = [f"port {port}", "bind 127.0.0.1", f"dir {folder}", "protected-mode no"]
        for name, watched in self.watched.items():
            lines += [
                f"sentinel monitor {name} 127.0.0.1 {watched.servers[0].port} 2",
                f"sentinel down-after-milliseconds {name} {self.down_after_ms}",
                f"sentinel failover-timeout {name} 3000",
            ]
            if self.secrets.password:
                lines.append(f"sentinel auth-pass {name} {self.secrets.password}")
        if self.secrets.sentinels:
            lines.append(f"requirepass {self.secrets.sentinels}")
        if self.secrets.user:
            lines.append(f"user {self.secrets.user}")
        file.write_text("\n".join(lines) + "\n")
        return self.stack.enter_context(Running(["redis-server", str(file), "--sentinel"], port))

    def knows(self, client: Any) -> bool:
        """Has it heard of the other sentinels and of the replicas?"""
        rows = [client.sentinel_master(name) for name in self.watched]
        others = len(self.sentinels) - 1
        return all(
            row["num-other-sentinels"] == others and row["num-slaves"] == len(watched.servers) - 1
            for watched, row in zip(self.watched.values(), rows, strict=True)
        )

    @property
    def addresses(self) -> str:
        """For a `servers` list."""
        return ", ".join(f'"{one.address}"' for one in self.sentinels)

    def master(self, name: str) -> Running:
        """Where the sentinels say that it is."""
        _, port = self.clients[0].sentinel_get_master_addr_by_name(name)
        return next(one for one in self.watched[name].servers if one.port == port)

    def fail_over(self, name: str) -> Running:
        """A switch by order; the new master."""
        before = self.master(name)
        wait_for(lambda: self._ordered(name), "the sentinel accepts the order", 20)
        wait_for(lambda: self.master(name) is not before, "the master is another one", 20)
        return self.master(name)

    def _ordered(self, name: str) -> bool:
        try:
            return bool(self.clients[0].sentinel_failover(name))
        except redis.ResponseError:  # it is about to do so already, or does not know the replica well enough yet
            return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()
