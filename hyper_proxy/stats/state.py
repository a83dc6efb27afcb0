"""How a fleet is, in one word: the same in `top` and on the sidecar's page."""

from __future__ import annotations

from hyper_proxy.config.model import OUT_OF_SERVICE

CLIENTS_OWN = frozenset({"client", "denied", "client_lost"})
"""Kinds of errors that are no trouble of the proxy or its servers: clients that err, or that leave."""
EXPECTED = CLIENTS_OWN | OUT_OF_SERVICE.keys()
"""The same, and those that an operator has ordered."""

GOOD, WARNING, BAD = "good", "warning", "bad"

SERVING = "serving"
HURTS = "serving, with errors"
DEGRADED = "degraded"

_WORDS = {"running": SERVING, "degraded": "not serving"}
"""The master's state in these words, where they differ: it knows whether any worker is ready, nothing of servers."""

_LEVELS = {SERVING: GOOD, "not serving": BAD, "stopping": BAD}


def word_of(master: str, whole: bool, hurts: bool, server_down: bool) -> str:
    """Of the master's state; whole: is every worker ready? hurts: do clients get errors, or worse?"""
    word = _WORDS.get(master, master)
    if word != SERVING:
        return word
    return HURTS if hurts and whole else DEGRADED if server_down or not whole else SERVING


def level_of(word: str) -> str:
    """How bad that is."""
    return _LEVELS.get(word, WARNING)
