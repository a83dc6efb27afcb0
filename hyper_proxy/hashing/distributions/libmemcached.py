"""The distributions of libmemcached 1.1.4 (MEMCACHED_DISTRIBUTION_* and MEMCACHED_BEHAVIOR_KETAMA*).

They share the hash functions of twemproxy, which took them from there, but not all of its rings are twemproxy's. A unix
socket has port 0 here. All was observed by calling the library (tests/hashing/vectors/libmemcached_rings.json).
"""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.hashing.distributions.ketama import sort_points, weighted_points
from hyper_proxy.hashing.functions.md5 import Md5
from hyper_proxy.hashing.hash import Hash
from hyper_proxy.hashing.lookup import Modulo, Ring
from hyper_proxy.hashing.names import Server, ring_name
from hyper_proxy.hashing.placement import Placement
from hyper_proxy.hashing.recipe import Recipe

POINTS_PER_SERVER = 100


def plain_name(server: Server) -> str:
    """twemproxy's name, but for unix sockets, which are `path:0`."""
    return f"{server.path}:0" if server.path and not server.name else ring_name(server)


def spy_name(server: Server) -> str:
    """The name that Java's spymemcached gives to an address: a slash before, and the port always behind."""
    return server.name or f"/{server.path or server.host}:{server.port}"


def modula(recipe: Recipe) -> Placement:
    """MODULA, the default: hash modulo number of servers; weights do not count."""
    return Modulo(len(recipe.servers), recipe.hash, recipe.hash_tag)


def hundred_points(recipe: Recipe, hash: Hash, name: Callable[[Server], str]) -> Placement:
    """A ring of 100 points per server, made by the same hash as that of the keys."""
    points = []
    for index, server in enumerate(recipe.servers):
        for i in range(POINTS_PER_SERVER):
            text = f"{name(server)}-{i}".encode()
            points.append((hash.value(text, 0, len(text)), index))
    return Ring(len(recipe.servers), hash, recipe.hash_tag, sort_points(points))


def md5_points(recipe: Recipe, hash: Hash | None, name: Callable[[Server], str]) -> Placement:
    """A ring of MD5 points by weight, as in twemproxy; keys by another hash."""
    return Ring(len(recipe.servers), hash, recipe.hash_tag, weighted_points(recipe.servers, name))


def ketama(recipe: Recipe) -> Placement:
    """KETAMA or CONSISTENT; the first server whose weight is above 1 turns it into the weighted ring."""
    assert recipe.hash is not None
    if any(server.weight > 1 for server in recipe.servers):
        return md5_points(recipe, recipe.hash, plain_name)
    return hundred_points(recipe, recipe.hash, plain_name)


def ketama_weighted(recipe: Recipe) -> Placement:
    """KETAMA_WEIGHTED, which sets the hash of keys to MD5 as well: the same as twemproxy's md5 with its ketama."""
    return md5_points(recipe, Md5(), plain_name)


def consistent_weighted(recipe: Recipe) -> Placement:
    """Distribution 5 set by itself: the weighted ring, but keys by the configured hash."""
    return md5_points(recipe, recipe.hash, plain_name)


def ketama_spy(recipe: Recipe) -> Placement:
    """KETAMA_SPY together with KETAMA_WEIGHTED or a weight above 1."""
    return md5_points(recipe, recipe.hash, spy_name)


def ketama_spy_plain(recipe: Recipe) -> Placement:
    """KETAMA_SPY set by itself."""
    assert recipe.hash is not None
    return hundred_points(recipe, recipe.hash, spy_name)
