"""What an instance's configuration lets a client do: log in, and send dangerous commands."""

from __future__ import annotations

import hmac

from hyper_proxy.common.errors import PolicyDenied
from hyper_proxy.config.model import Instance


def needs_login(instance: Instance) -> bool:
    """Must a client say a password before anything else?"""
    return bool(instance.password)


def may_log_in(instance: Instance, user: str, password: bytes) -> bool:
    """Is this the instance's user and password? Compared in constant time."""
    expected = instance.username or "default"
    right_user = hmac.compare_digest(user.encode(), expected.encode())
    return hmac.compare_digest(password, instance.password.encode()) and right_user


IMPLIED_BY = {"CACHE_MEMLIMIT": "FLUSH_ALL"}
"""Who may empty the servers may also resize them."""


def allows(instance: Instance, command: str) -> bool:
    """Does `allow` grant a dangerous command (upper case), by its name or by that of a greater one?"""
    return command in instance.allow or IMPLIED_BY.get(command) in instance.allow


def check_allowed(instance: Instance, command: str) -> None:
    """A dangerous command (upper case) passes only when `allow` grants it; PolicyDenied says what to write where."""
    if not allows(instance, command):
        where = f"instance '{instance.name}'"
        raise PolicyDenied(f"'{command}' is not allowed by {where}: name it in its `allow` to serve it")
