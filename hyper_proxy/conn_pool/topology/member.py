"""A server that a topology has told of."""

from __future__ import annotations

from time import monotonic

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Level, Server
from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.node import Node
from hyper_proxy.conn_pool.nodes import Identity, identity
from hyper_proxy.conn_pool.replies import ReplyParser


class Member(Node):
    """seen_at: when the topology last told of it. late: why it is not read from as a replica; "" when it is.
    is_looked_at: is it known how it is, as a replica? caught_up_at: when it last was known to have all that its master
    had. behind_s: how long ago that is. made_for: what must be equal for it to be kept at a reload.
    """

    def __init__(
        self, instance: str, level: Level, server: Server, parser: type[ReplyParser], greeting: Greeting,
        before: Node | None = None,
    ) -> None:  # fmt: skip
        super().__init__(instance, level, server, parser, greeting, before)
        self.made_for: Identity = identity(level, server)
        self.seen_at = 0.0
        self.late = ""
        self.is_looked_at = False
        self.caught_up_at = 0.0
        self.behind_s = 0.0

    def touch(self) -> None:
        """It was told of now."""
        self.seen_at = monotonic()

    def lead(self) -> None:
        """It is a master, so nothing is known of it as a replica."""
        self.late = ""
        self.is_looked_at = False
        self.caught_up_at = self.behind_s = 0.0

    @property
    def is_late(self) -> bool:
        return bool(self.late)

    @property
    def lag_s(self) -> float:
        return self.behind_s


class Nobody(Member):
    """In the place of a server that is not known yet, or that there is not: every request fails with `why`."""

    def __init__(self, instance: str, level: Level, name: str, parser: type[ReplyParser], greeting: Greeting,
                 why: str) -> None:  # fmt: skip
        super().__init__(instance, level, Server(name=name), parser, greeting)
        self.why = why

    @property
    def where(self) -> str:
        return self.label

    def admit(self, greeting: Greeting) -> BackendError | None:
        return self.error("unknown", self.why)
