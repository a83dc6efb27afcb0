"""hyper_proxy: one proxy between applications and their redis, memcached, Lushan, MySQL and SQLite storage.

Bytes travel down the folders entry, protocol, tenant, hashing, tunnel, storage, conn_pool, and the replies come back up
as return values. ARCHITECTURE.md follows one MGET through them, file by file.
"""

from hyper_proxy.plain import install

__version__ = "0.1.0"

install()
