"""The rules across keys, one function each, in one table; codes.py says what their findings mean."""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.config.model import Config
from hyper_proxy.config.notes import Notes

Rule = Callable[[Config, Notes], None]

RULES: tuple[Rule, ...] = ()


def apply_rules(config: Config, notes: Notes) -> None:
    """Lets every rule look at a configuration; it may have gaps where faults have been noted already."""
    for rule in RULES:
        rule(config, notes)
