"""What is allowed but has hurt people: warnings about a choice of hash, distribution and servers.

Each trap is one function; TRAPS lists them in the order in which they are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hyper_proxy.hashing.build import build, find_row
from hyper_proxy.hashing.lookup import Ring
from hyper_proxy.hashing.names import Server, full_name, ring_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.tables import DISTRIBUTIONS, HASHES, DistributionRow

RING_BITS_LEAST = 31  # a hash with fewer bits than the ring's points reaches only the beginning of the ring
NO_CHECK = "nocheck"


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen; `hash` is empty where the configuration names none."""

    hash: str
    distribution: str
    servers: Sequence[Server]
    row: DistributionRow
    placement: Placement


def few_bits(choice: Choice) -> Iterator[str]:
    """crc32 + ketama: 1817 of 1817 keys on one server of three."""
    name = choice.hash or choice.row.hash
    if name is None or choice.row.hash is None or not isinstance(choice.placement, Ring):
        return
    row, options = find_row("hash", name, HASHES)
    bits = 15 if options[-1:] == ("short",) else row.bits
    highest = max(point for point, _ in choice.placement.ring())
    if bits < RING_BITS_LEAST and highest >> bits:
        yield (
            f"hash '{name}' has only {bits} bits: with distribution '{choice.distribution}' it reaches only the first "
            "points of the ring, so that one server gets nearly all keys; crc32a has 32 bits"
        )


def no_alias(choice: Choice) -> Iterator[str]:
    """A ring of addresses moves keys when a server gets another address."""
    bare = [full_name(server) for server in choice.servers if not server.name]
    if choice.row.names and bare and len(choice.servers) > 1:
        yield (
            f"distribution '{choice.distribution}' places keys by the names of servers, and {', '.join(bare)} "
            f"{'have' if len(bare) > 1 else 'has'} no alias: another address would move keys. "
            f"To add an alias now moves keys too, unless it equals the old name{_such_as(choice)}"
        )


def _such_as(choice: Choice) -> str:
    """How the first of them is written with the name that it has in twemproxy's ring, the default."""
    hosts = [server for server in choice.servers if server.host and not server.name]
    if choice.row is not DISTRIBUTIONS["ketama"] or not hosts:
        return ""
    return f': "{full_name(hosts[0])}:{hosts[0].weight} {ring_name(hosts[0])}"'


def equal_points(choice: Choice) -> Iterator[str]:
    """Two servers with the same name, or with a point in common."""
    if not isinstance(choice.placement, Ring):
        return
    hidden: dict[tuple[int, int], int] = {}
    for pair in choice.placement.equal_points():
        hidden[pair] = hidden.get(pair, 0) + 1
    for (first, second), count in hidden.items():
        yield (
            f"servers {full_name(choice.servers[first])} and {full_name(choice.servers[second])} have {count} equal "
            f"ring point{'s' if count > 1 else ''}: the first gets these keys here, elsewhere it may be the second"
        )


def no_points(choice: Choice) -> Iterator[str]:
    """A weight so small beside the others that nothing is left of it."""
    if isinstance(choice.placement, Ring):
        owners = {owner for _, owner in choice.placement.ring()}
        for index, server in enumerate(choice.servers):
            if index not in owners:
                yield f"the weight of server {full_name(server)} is too small for a single point: it gets no keys"


def power_of_two(choice: Choice) -> Iterator[str]:
    """Weibo's range and modrange leave shards uneven otherwise."""
    count = len(choice.servers)
    if choice.row.powers and count & (count - 1) and NO_CHECK not in choice.distribution.split("-"):
        yield (
            f"distribution '{choice.distribution}' is made for a power of two of servers, not {count}: "
            "add '-nocheck' if it is meant"
        )


def unused_weights(choice: Choice) -> Iterator[str]:
    """Weights that change nothing."""
    if not choice.row.weights and len({server.weight for server in choice.servers}) > 1:
        yield f"distribution '{choice.distribution}' does not look at the weights of servers"


TRAPS: tuple[Callable[[Choice], Iterator[str]], ...] = (
    few_bits,
    no_alias,
    equal_points,
    no_points,
    power_of_two,
    unused_weights,
)


def warnings(hash: str, distribution: str, servers: Sequence[Server]) -> list[str]:
    """One sentence for each trap that this choice falls into; raises HashingError for a choice that cannot be built."""
    row, _ = find_row("distribution", distribution, DISTRIBUTIONS)
    choice = Choice(hash, distribution, servers, row, build(hash, distribution, "", servers))
    return [sentence for trap in TRAPS for sentence in trap(choice)]
