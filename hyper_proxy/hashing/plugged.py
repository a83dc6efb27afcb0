"""Hash functions and distributions of plug-ins: plain Python functions as rows of the tables.

They are called for each key: that costs a call of Python, where what is built in costs none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.plugin_error import (
    Owner,
    PluginError,
    Question,
    describe,
    guarded,
    nonsense,
    place_of,
    place_of_function,
)
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.names import Server
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe
from hyper_proxy.hashing.tables import DistributionRow, HashRow

TRIALS = (b"", b"a", b"user:1", bytes(range(256)))
"""Keys that a hash is tried with before it is believed."""
SPREAD = 0x9E3779B97F4A7C15  # 2**64 divided by the golden ratio: its multiples lie all over the range
TRIED = 64

T = TypeVar("T")

HashFunction = Callable[[bytes], int]
Choose = Callable[[int], int]


class PluggedHash(Hash):
    """`function`: from a key to a number."""

    def __init__(self, owner: Owner, name: str, function: HashFunction) -> None:
        self.owner = owner
        self.name = name
        self.function = function

    def value(self, buf: bytes, start: int, end: int) -> int:
        """Raises PluginError."""
        key = buf[start:end]
        try:
            number = _called(self.owner, self.name, self.function, key)
            if not isinstance(number, int) or not 0 <= number < 1 << 64:
                raise nonsense(self.owner, self.name, self.function, "a number from 0 to 2**64-1", number)
        except PluginError as fault:
            fault.asked = Question(keys=(bytes(key),))
            raise
        return number


class PluggedPlacement(Placement):
    """`choose`: from the number of a key to the index of its server."""

    def __init__(self, owner: Owner, recipe: Recipe, choose: Choose) -> None:
        super().__init__(len(recipe.servers), recipe.hash, recipe.hash_tag)
        self.owner = owner
        self.name = f"distribution '{recipe.name}'"
        self.choose_server = choose

    def shard_of(self, value: int) -> int:
        """Raises PluginError. An index without a server must not reach the data path, which does not look again."""
        try:
            index = _called(self.owner, self.name, self.choose_server, value)
            if not isinstance(index, int) or not 0 <= index < self.shards:
                wanted = f"an index from 0 to {self.shards - 1}"
                raise nonsense(self.owner, self.name, self.choose_server, wanted, index)
        except PluginError as fault:
            fault.asked = Question(f"the number {value} of a key")
            raise
        return index


def _called(owner: Owner, name: str, function: Callable[[T], Any], value: T) -> Any:
    """What it returns. Nobody is to blame for an error but the function: a client's own it must not raise."""
    try:
        return guarded(owner, name, function, value)
    except PluginError:
        raise
    except HyperProxyError as error:
        at = place_of(error, owner) or place_of_function(function, owner)
        raise PluginError(owner, name, describe(error), at) from error


def hash_row(owner: Owner, name: str, function: HashFunction, help: str) -> HashRow:
    """The row of a hash. Raises PluginError when the function does not stand a trial."""
    function_of = PluggedHash(owner, name, function)
    try:
        for key in TRIALS:
            first, second = (function_of.value(key, 0, len(key)) for _ in range(2))
            if first != second:
                raise nonsense(owner, name, function, f"{first} again", second, Question(keys=(key,)))
    except PluginError as fault:
        fault.function = name  # also where the time to load it was over
        raise
    return HashRow(lambda options: function_of, help, bits=64)


def distribution_row(
    owner: Owner, make: Callable[[Sequence[Server]], Choose], hash: str, help: str, **traits: Any
) -> DistributionRow:
    """The row of a distribution: `make` gets the servers and returns a function from a hash value to an index."""

    def build(recipe: Recipe) -> Placement:
        name = f"distribution '{recipe.name}'"
        try:
            choose = _called(owner, name, make, recipe.servers)
            if not callable(choose):
                raise nonsense(owner, name, make, "a function from a number to the index of a server", choose)
            placement = PluggedPlacement(owner, recipe, choose)
            for turn in range(TRIED):
                placement.shard_of(turn * SPREAD % (1 << 64))
        except PluginError as error:
            raise HashingError(error.in_full) from error
        return placement

    return DistributionRow(build, help, hash, **traits)
