"""What `allow` grants."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hyper_proxy.common.errors import PolicyDenied
from hyper_proxy.config.load import embedded_default
from hyper_proxy.tenant import policy


@pytest.mark.parametrize(
    ("allow", "command", "granted"),
    [
        ("", "FLUSH_ALL", False),
        ("FLUSH_ALL", "FLUSH_ALL", True),
        ("FLUSH_ALL", "CACHE_MEMLIMIT", True),
        ("CACHE_MEMLIMIT", "CACHE_MEMLIMIT", True),
        ("CACHE_MEMLIMIT", "FLUSH_ALL", False),
        ("FLUSH_ALL", "FLUSHALL", False),
    ],
)
def test_a_command_is_granted_by_its_name_or_by_a_greater_one(allow: str, command: str, granted: bool) -> None:
    instance = replace(embedded_default("/nowhere").instances[0], allow=frozenset(allow.split()))
    assert policy.allows(instance, command) is granted
    if granted:
        policy.check_allowed(instance, command)
    else:
        with pytest.raises(PolicyDenied, match=f"'{command}' is not allowed"):
            policy.check_allowed(instance, command)
