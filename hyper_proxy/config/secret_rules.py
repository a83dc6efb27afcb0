"""What is written as a name or password, and would be a variable elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hyper_proxy.config.model import Config
from hyper_proxy.config.notes import Path
from hyper_proxy.config.rule import Say, levels_of

_VARIABLE = re.compile(r"\$\{.*\}|\$[A-Z][A-Z0-9_]+|\{\{.*\}\}|%[A-Z][A-Z0-9_]+%")
_OF_LEVEL = ("username", "password", "sentinel_username", "sentinel_password")


def secrets_are_filled_in(config: Config, say: Say) -> None:
    """HP411"""
    for path, text in _secrets(config):
        if _VARIABLE.fullmatch(text):
            say(path, "this looks like a variable, and nothing is expanded: what is written here is what must be given")


def _secrets(config: Config) -> Iterator[tuple[Path, str]]:
    yield ("admin", "token"), config.admin_token
    for index, instance in enumerate(config.instances):
        yield ("instance", index, "username"), instance.username
        yield ("instance", index, "password"), instance.password
    for path, level in levels_of(config):
        for key in _OF_LEVEL:
            yield (*path, key), getattr(level, key)
