"""Old blocking redis clients whose connections may end between two requests, and who then connect again, once."""

from __future__ import annotations

from collections.abc import Callable

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry


class Reconnecting:
    """A client as old applications are: when its connection has ended it opens another one and asks again, once."""

    def __init__(self, port: int, number: int) -> None:
        self.client = redis.Redis(port=port, socket_timeout=10, retry=Retry(NoBackoff(), 1), protocol=2)
        self.key = f"client:{number}"
        self.turn = 0

    def step(self) -> None:
        """Writes and reads back."""
        self.turn += 1
        self.client.set(self.key, self.turn)
        assert self.client.get(self.key) == str(self.turn).encode()

    def fresh(self) -> None:
        """The same on a connection of its own."""
        self.client.close()
        self.step()


def reconnecting(port: int) -> Callable[[int], Callable[[], None]]:
    """Half of the clients keep their connection as long as it lasts, half open one for each step."""

    def make_step(number: int) -> Callable[[], None]:
        client = Reconnecting(port, number)
        return client.fresh if number % 2 else client.step

    return make_step
