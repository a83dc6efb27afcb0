"""mcrouter's hash functions for pools: ch3, crc32, weighted ch3, rendezvous and weighted rendezvous.

Options: `-salt=TEXT` appends TEXT to every key before it is hashed. mcrouter's weights are numbers from 0 to 1, those
of the configuration are whole: `-whole=N` says which weight means 1.0 (without it, the largest).
"""

from __future__ import annotations

from dataclasses import dataclass

from hyper_proxy.hashing.distributions.furc import SEED, Furc
from hyper_proxy.hashing.distributions.rendezvous import Rendezvous, WeightedRendezvous
from hyper_proxy.hashing.distributions.routing_key import RoutingKey, Salted
from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.functions.crc import Crc32
from hyper_proxy.hashing.functions.murmur import Murmur64A
from hyper_proxy.hashing.functions.spooky import Spooky
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.lookup import Modulo
from hyper_proxy.hashing.names import full_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

RENDEZVOUS_KEY_SEED = 2718281828
WEIGHT_SEED = 0xFACE2014
TRIES = 32


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of a mcrouter distribution: salt, and the weight that means 1.0 (0: the largest)."""

    salt: bytes = b""
    whole: int = 0

    @classmethod
    def read(cls, recipe: Recipe, weighted: bool = False) -> Settings:
        """From what follows the name; the salt comes last, since it may hold a "-"."""
        rest, mark, salt = "-".join(("", *recipe.options)).partition("-salt=")
        whole = rest.removeprefix("-whole=")
        if weighted and whole != rest and whole.isascii() and whole.isdigit() and int(whole) > 0:
            return cls(salt.encode(), int(whole))
        if rest or (mark and not salt):
            raise HashingError(f"'{recipe.name}': cannot read the options after '{recipe.name.split('-')[0]}'")
        return cls(salt.encode())

    def hash(self, inner: Hash) -> Hash:
        """The hash with the salt, if there is one."""
        return Salted(inner, self.salt) if self.salt else inner

    def weights(self, recipe: Recipe) -> list[float]:
        """The weights of the servers as mcrouter has them."""
        whole = self.whole or max(server.weight for server in recipe.servers)
        weights = [server.weight / whole for server in recipe.servers]
        if max(weights) > 1:
            raise HashingError(f"'{recipe.name}': a weight is above {whole}, which means 1.0")
        return weights


def ch3(recipe: Recipe) -> Placement:
    """The default of mcrouter."""
    hash = Settings.read(recipe).hash(Murmur64A(SEED))
    return RoutingKey(Furc(len(recipe.servers), hash, recipe.hash_tag))


class WeightedCh3(Placement):
    """ch3, which a server of weight w accepts with probability w; refused keys are tried again with a suffix."""

    def __init__(self, furc: Furc, hash_tag: bytes, salt: bytes, weights: list[float]) -> None:
        super().__init__(furc.shards, furc.hash, hash_tag)
        self.furc = furc
        self.salt = salt
        self.limits = [int(weight * 4294967295) for weight in weights]
        self.dice = Spooky(WEIGHT_SEED)

    def choose(self, buf: bytes, start: int, end: int) -> int:
        """The first of 32 proposals that is accepted, else the last one."""
        key = text = buf[start:end] + self.salt
        shard = 0
        for turn in range(TRIES):
            shard = self.furc.choose(text, 0, len(text))
            if self.dice.value(text, 0, len(text)) < self.limits[shard]:
                break
            # The number of the turn, its digits from the last to the first.
            text = key + str(turn)[::-1].encode()
        return shard


def crc32(recipe: Recipe) -> Placement:
    """mcrouter's Crc32: (CRC-32 & 0x7fffffff) modulo number of servers."""
    hash = Settings.read(recipe).hash(Crc32(0, 0x7FFFFFFF))
    return RoutingKey(Modulo(len(recipe.servers), hash, recipe.hash_tag))


def weighted_ch3(recipe: Recipe) -> Placement:
    """mcrouter's WeightedCh3."""
    settings = Settings.read(recipe, weighted=True)
    furc = Furc(len(recipe.servers), Murmur64A(SEED), b"")
    return RoutingKey(WeightedCh3(furc, recipe.hash_tag, settings.salt, settings.weights(recipe)))


def endpoint_hashes(recipe: Recipe) -> list[int]:
    """MurmurHash64A of the names of the servers, `host:port` always in full."""
    murmur = Murmur64A(SEED)
    names = [full_name(server).encode() for server in recipe.servers]
    return [murmur.value(name, 0, len(name)) for name in names]


def rendezvous(recipe: Recipe) -> Placement:
    """mcrouter's Rendezvous."""
    hash = Settings.read(recipe).hash(Murmur64A(RENDEZVOUS_KEY_SEED))
    return RoutingKey(Rendezvous(hash, recipe.hash_tag, endpoint_hashes(recipe)))


def weighted_rendezvous(recipe: Recipe) -> Placement:
    """mcrouter's WeightedRendezvous."""
    settings = Settings.read(recipe, weighted=True)
    hash = settings.hash(Murmur64A(RENDEZVOUS_KEY_SEED))
    return RoutingKey(WeightedRendezvous(hash, recipe.hash_tag, endpoint_hashes(recipe), settings.weights(recipe)))
