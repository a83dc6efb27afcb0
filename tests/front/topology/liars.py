"""Servers that say of a topology what they are told to say."""

from __future__ import annotations

from tests.kit.fakes import REDIS, FakeServer
from tests.kit.fakes.redis import array, bulk


class _Says:
    """A redis that answers some requests, by their first words in upper case, with what stands here."""

    garbage = REDIS.garbage
    surplus = REDIS.surplus
    greetings = REDIS.greetings
    read = staticmethod(REDIS.read)

    def __init__(self) -> None:
        self.said: dict[bytes, bytes] = {}
        self.asked: dict[bytes, int] = {}

    def answer(self, request: list[bytes]) -> bytes:
        for count in (2, 1):
            words = b" ".join(request[:count]).upper()
            self.asked[words] = self.asked.get(words, 0) + 1
            if words in self.said:
                return self.said[words]
        return REDIS.answer(request)


class Seed(FakeServer):
    """The one server of a cluster, as it says: all slots are its own."""

    def __init__(self) -> None:
        self.says = _Says()
        super().__init__(self.says)
        self.says.said[b"CLUSTER INFO"] = bulk(b"cluster_state:ok\r\n")
        self.say(b":0", b":16383")

    def say(self, first: bytes, last: bytes) -> None:
        """One range of slots; its bounds as they travel, without the end of the line."""
        here = array([bulk(b"127.0.0.1"), b":%d\r\n" % self.port])
        self.say_slots(array([array([first + b"\r\n", last + b"\r\n", here])]))

    def say_slots(self, reply: bytes) -> None:
        """The whole answer to CLUSTER SLOTS."""
        self.says.said[b"CLUSTER SLOTS"] = reply

    @property
    def looks(self) -> int:
        """How often it was asked for the slots."""
        return self.says.asked.get(b"CLUSTER SLOTS", 0)


class Sentinel(FakeServer):
    """It knows one master, whatever its name."""

    def __init__(self, host: str, port: int, epoch: int) -> None:
        self.says = _Says()
        super().__init__(self.says)
        self.says.said[b"SENTINEL REPLICAS"] = array([])
        self.say(host, port, epoch)

    def say(self, host: str, port: int, epoch: int) -> None:
        """Where the master is, and since which epoch."""
        self.says.said[b"SENTINEL MASTER"] = array([bulk(b"config-epoch"), bulk(b"%d" % epoch)])
        self.says.said[b"SENTINEL GET-MASTER-ADDR-BY-NAME"] = array([bulk(host.encode()), bulk(b"%d" % port)])
