"""The one error of this folder: a placement that cannot be built."""

from __future__ import annotations

from hyper_proxy.common.errors import HyperProxyError


class HashingError(HyperProxyError):
    """A hash, distribution, hash tag or list of servers that cannot be used; the text says which and what would do."""

    kind = "hashing"
