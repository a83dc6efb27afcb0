"""Hot loops keep copies of the numbers that they compare with; here they are held against their tables."""

from __future__ import annotations

from types import ModuleType

import pytest

from hyper_proxy.protocol.memcache import command as memcache
from hyper_proxy.protocol.redis import command as redis
from tests.kit.plain import plain

FORMS = ["STORE", "STORE_CAS", "NUMBER", "EXPTIME", "DELETE", "META", "META_STORE", "META_DEBUG"]


@pytest.mark.parametrize(
    ("copy", "table", "names"),
    [
        ("hyper_proxy.protocol.redis.session", redis, ["SINGLE", "SPLIT"]),
        ("hyper_proxy.protocol.memcache.session", memcache, ["RETRIEVE_TOUCHING", "LOCAL"]),
        ("hyper_proxy.protocol.memcache.line", memcache, ["RETRIEVE_TOUCHING", "LOCAL", *FORMS]),
    ],
)
def test_copies_equal_their_table(copy: str, table: ModuleType, names: list[str]) -> None:
    module = plain(copy)
    assert {name: getattr(module, name) for name in names} == {name: getattr(table, name) for name in names}
