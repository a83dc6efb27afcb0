"""Storage servers that misbehave on order: `FakeServer(REDIS)` or `FakeServer(MEMCACHE)`, then `.behave("silent")`.

Every value names its key (`value of KEY`), so that a reply which reached the wrong client shows.
"""

from tests.kit.fakes.memcache import MEMCACHE
from tests.kit.fakes.redis import REDIS
from tests.kit.fakes.server import BEHAVIOURS, FakeServer

__all__ = ["BEHAVIOURS", "MEMCACHE", "REDIS", "FakeServer"]
