"""What a kind of server speaks."""

from __future__ import annotations

from dataclasses import dataclass

from hyper_proxy.conn_pool.greeting import Greeting
from hyper_proxy.conn_pool.replies import ReplyParser
from hyper_proxy.conn_pool.routes.speech import Speech


@dataclass(frozen=True, slots=True)
class Tongue:
    """parser: of its replies; greeting: of a new connection; speech: what routes understand of its words."""

    parser: type[ReplyParser]
    greeting: Greeting
    speech: Speech
