"""How a redis server is made to hand keys over: MIGRATE (https://redis.io/docs/latest/commands/migrate/).

It serializes the keys, restores them at the other server with what is left of their time, and deletes them when that
has said OK; nobody else is served meanwhile, so for others it is one step. What fails half way leaves a key at both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyper_proxy.config.model import Level, Server
from hyper_proxy.conn_pool.moving.mover import Outcome
from hyper_proxy.storage.redis_words import encode

OUTCOMES = {b"+OK\r\n": Outcome.DONE, b"+NOKEY\r\n": Outcome.NONE}
SHARE = 0.25  # of the read deadline: the server that is asked must itself answer in time, and several workers ask it

LONGEST_MS = 1000  # for a key that takes longer than that, twice as long with each failure
MOST_DOUBLINGS = 10


def no_keys(request: bytes) -> list[bytes]:
    """Before `keys_of` is set nothing is served."""
    raise RuntimeError("nobody has said how the keys of a request are found")


class RedisMover:
    """timeout_ms: for how long nothing may come from the other server. keys_of: set by who knows the commands."""

    def __init__(self, level: Level, timeout_ms: int = 0) -> None:
        self.level = level
        self.timeout_ms = timeout_ms or max(1, round(level.timeout.read_ms * SHARE))
        self.keys_of: Callable[[bytes], list[bytes]] = no_keys

    def hand_over(self, to: Server, greeting: object, keys: Sequence[bytes], replace: bool, failures: int = 0) -> bytes:
        """MIGRATE; `greeting` has the number of the database."""
        level = self.level
        timeout_ms = max(self.timeout_ms, min(LONGEST_MS, self.timeout_ms << min(failures, MOST_DOUBLINGS)))
        db: int = greeting.db  # type: ignore[attr-defined]
        words: list[str | bytes] = ["REPLACE"] if replace else []
        if level.password:
            words += ["AUTH2", level.username, level.password] if level.username else ["AUTH", level.password]
        return encode("MIGRATE", to.host, to.port, "", db, timeout_ms, *words, "KEYS", *keys)

    def look(self, keys: Sequence[bytes]) -> bytes:
        """EXISTS."""
        return encode("EXISTS", *keys)

    def has_none(self, reply: bytes) -> bool:
        """How many there are, or an error."""
        return reply == b":0\r\n"

    def outcome(self, reply: bytes) -> Outcome:
        """+OK, +NOKEY, or an error: its own, or one of the other server in its words.

        "-IOERR error or timeout" is followed by what it was doing: "connecting", "reading" or "writing".
        """
        if reply in OUTCOMES:
            return OUTCOMES[reply]
        if reply.startswith(b"-IOERR"):
            return Outcome.UNREACHABLE if b"connecting" in reply else Outcome.BROKEN
        return Outcome.OCCUPIED if b"BUSYKEY" in reply else Outcome.FAILED
