"""Which protocols and storages there are, and what each storage can be. The lists are those that plug-ins add their
names to (hyper_proxy/plugin.py)."""

PROTOCOLS = ["redis", "memcache", "http"]
STORAGES = {
    "redis": ["redis", "memcache", "sqlite", "mysql"],
    "memcache": ["memcache", "lushan", "redis", "sqlite", "mysql"],
    "http": ["redis", "memcache", "sqlite", "mysql"],
}
"""The storages that can serve each protocol."""
CACHES = ("redis", "memcache", "lushan")
"""The storages that can stand above another level."""
KNOWING = ["redis", "memcache", "sqlite", "mysql"]
"""The storages that can be the last of several levels: what they say is so."""
NETWORK = ("redis", "memcache", "lushan", "mysql")
"""Storages that are servers at addresses, to which connections are kept; sqlite is a file."""
LOCAL = "local"
"""Copies in the worker's own memory: the first of several levels, and no server."""
KINDS = [*NETWORK, "sqlite", LOCAL]
"""All storages."""
PLACED = [*NETWORK]
"""Storages over whose servers keys are spread."""
FILES = ["sqlite"]
"""Storages whose servers are paths of files or folders."""
BUILT_IN = tuple(PROTOCOLS)
"""The protocols of the proxy itself."""
PIPELINED = ("redis", "memcache", "lushan")
"""Storages whose connections carry the requests of many clients at once."""
SQL = ("mysql",)
"""Storages that are tables of a SQL server."""
LOGIN = ["redis", "mysql"]
"""Storages whose servers can ask for a password."""
