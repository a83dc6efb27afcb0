"""Which level of a new configuration goes on with which one of before: one may have been put above, or taken away.

A level is the same while its servers are, as most of them; where it has none in common with any, by its place.
"""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy.config.model import Level


def successors(before: Sequence[Level], after: Sequence[Level]) -> dict[int, int]:
    """From the depth in `before` to that in `after`, one to one; the other way round it is the same."""
    candidates = []
    for old, level in enumerate(before):
        for new, other in enumerate(after):
            common = len(_addresses(level) & _addresses(other))
            if level.storage == other.storage and (common or old == new):
                candidates.append((-common, abs(old - new), old + new, old, new))
    found: dict[int, int] = {}
    for _, _, _, old, new in sorted(candidates):
        if old not in found and new not in found.values():
            found[old] = new
    return found


def _addresses(level: Level) -> set[str]:
    return {server.address for server in level.everyone}
