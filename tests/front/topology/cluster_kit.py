"""A real redis cluster, set up by hand so that it is there in a second."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import redis

from tests.kit.ports import free_port
from tests.kit.servers import Running
from tests.kit.wait import wait_for

SLOTS = 16384
NODE_TIMEOUT_MS = 1500


class Node:
    """One server of a cluster."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        port, bus = free_port(), free_port()
        home = Path(tempfile.mkdtemp(dir=folder))
        self.server = stack.enter_context(Running([
            "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", str(home), "--cluster-enabled", "yes", "--cluster-port", str(bus),
            "--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--cluster-replica-validity-factor", "0",
            "--cluster-allow-replica-migration", "no", "--repl-diskless-sync-delay", "0",
            "--repl-ping-replica-period", "1",
        ], port))  # fmt: skip
        self.port = port
        self.bus = bus
        self.client = stack.enter_context(redis.Redis(port=port, decode_responses=False))
        self.id = self.ask("CLUSTER MYID").decode()

    @property
    def address(self) -> str:
        """As it stands in a `servers` list."""
        return self.server.address

    def ask(self, command: str, *more: object) -> Any:
        """A command to this server alone, the reply as it came."""
        connection = self.client.connection_pool.get_connection()
        try:
            connection.send_command(*command.split(), *more)
            return connection.read_response()
        finally:
            self.client.connection_pool.release(connection)

    def info(self, section: str) -> dict[str, str]:
        """INFO or CLUSTER INFO."""
        text = self.ask(section).decode()
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


class Cluster:
    """`masters` share all slots in equal ranges; each has `replicas` replicas."""

    def __init__(self, folder: Path, masters: int = 3, replicas: int = 0) -> None:
        self.stack = ExitStack()
        self.folder = folder
        self.masters = [Node(self.stack, folder) for _ in range(masters)]
        self.replicas = [Node(self.stack, folder) for _ in range(masters * replicas)]
        for number, node in enumerate(self.nodes):
            node.ask("CLUSTER SET-CONFIG-EPOCH", number + 1)
        for number, node in enumerate(self.masters):
            node.ask("CLUSTER ADDSLOTSRANGE", number * SLOTS // masters, (number + 1) * SLOTS // masters - 1)
        for node in self.nodes[1:]:
            self.introduce(node)
        wait_for(lambda: all(self.is_well(node) for node in self.nodes), "the cluster is well", 20)
        for number, node in enumerate(self.replicas):
            node.ask("CLUSTER REPLICATE", self.masters[number % masters].id)
        wait_for(lambda: all(self.follows(node) for node in self.replicas), "the replicas follow", 20)

    @property
    def nodes(self) -> list[Node]:
        """All."""
        return [*self.masters, *self.replicas]

    @property
    def servers(self) -> str:
        """For a `servers` list: two of them, which know of the others."""
        return ", ".join(f'"{node.address}"' for node in self.masters[:2])

    def introduce(self, node: Node) -> None:
        """Let the others know of a new one."""
        self.masters[0].ask("CLUSTER MEET 127.0.0.1", node.port, node.bus)

    def is_well(self, node: Node) -> bool:
        """Does it know of all others, and of a master for each slot?"""
        info = node.info("CLUSTER INFO")
        return info["cluster_state"] == "ok" and info["cluster_known_nodes"] == str(len(self.nodes))

    def follows(self, node: Node) -> bool:
        """Is this replica up to date, and do all others know that it is one?"""
        linked = node.info("INFO replication").get("master_link_status") == "up"
        return linked and all(str(node.port) in str(one.ask("CLUSTER SLOTS")) for one in self.nodes)

    def add_master(self) -> Node:
        """A new one without slots."""
        node = Node(self.stack, self.folder)
        node.ask("CLUSTER SET-CONFIG-EPOCH", len(self.nodes) + 1)
        self.introduce(node)
        self.masters.append(node)
        wait_for(lambda: all(self.is_well(one) for one in self.nodes), "all know the new one", 20)
        return node

    def owner(self, slot: int) -> Node:
        """The master of a slot, as the first server that runs sees it."""
        alive = next(node for node in self.nodes if node.server.process.poll() is None)
        for first, last, master, *_ in alive.ask("CLUSTER SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == master[1])
        raise AssertionError(f"slot {slot} has no master")

    def begin_move(self, slot: int, target: Node) -> None:
        """The slot begins to leave its master."""
        source = self.owner(slot)
        target.ask("CLUSTER SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER SETSLOT", slot, "MIGRATING", target.id)

    def move_keys(self, slot: int, target: Node, most: int = 1 << 30) -> int:
        """At most so many keys of a slot that is leaving."""
        source = self.owner(slot)
        moved = 0
        while moved < most and (keys := source.ask("CLUSTER GETKEYSINSLOT", slot, min(10, most - moved))):
            source.ask("MIGRATE 127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            moved += len(keys)
        return moved

    def end_move(self, slot: int, target: Node) -> None:
        """All keys have left: the slot is the new master's."""
        source = self.owner(slot)
        for node in (target, source, *self.masters):
            node.ask("CLUSTER SETSLOT", slot, "NODE", target.id)

    def move(self, slot: int, target: Node) -> None:
        """All of it, as redis-cli --cluster reshard does it."""
        self.begin_move(slot, target)
        self.move_keys(slot, target)
        self.end_move(slot, target)

    def keys_in(self, slot: int, count: int) -> list[str]:
        """Keys of one slot, without a tag in common."""
        found: list[str] = []
        number = 0
        while len(found) < count:
            if slot_of(f"key-{number}") == slot:
                found.append(f"key-{number}")
            number += 1
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()


def slot_of(key: str) -> int:
    """Its slot, by redis' own client."""
    return redis.crc.key_slot(key.encode())


def config(servers: str, port: int, more: str = "", topology: str = "cluster", workers: int = 2) -> str:
    """One instance in front of the cluster."""
    return (
        f'[proxy]\nworkers = {workers}\n[[instance]]\nname = "shop"\nprotocol = "redis"\n'
        f'listen = ["127.0.0.1:{port}"]\nallow = ["FLUSHALL", "KEYS"]\n'
        f'  [[instance.level]]\n  storage = "redis"\n  topology = "{topology}"\n  servers = [{servers}]\n'
        f"  timeout = {{ connect_ms = 500, read_ms = 2000 }}\n  backoff = {{ base_ms = 20, max_ms = 100 }}\n{more}"
    )
