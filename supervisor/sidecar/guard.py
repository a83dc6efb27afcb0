"""Who may ask the sidecar: pages of strangers must not reach it through an operator's browser.

DNS rebinding: a page of evil.example whose name suddenly means 127.0.0.1 sends its own name as Host. A Host that is
an address, or localhost, or the host of [admin] listen, can't be one. Cross-site requests: a browser names the page's
Origin with every POST; only the sidecar's own pages may. Changes are accepted from this machine alone.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

READING = frozenset({"GET", "HEAD", "OPTIONS"})


def refusal(method: str, host: str, origin: str | None, peer: str | None, own_host: str) -> str | None:
    """Why a request is refused; None when it is not. `peer` is None for a client of a unix socket."""
    name = urlsplit(f"//{host}").hostname or ""
    if not (name in ("localhost", own_host) or _is_address(name)):
        return f"the Host header names '{name}': use an address, localhost or the host of [admin] listen"
    if method in READING:
        return None
    if origin is not None and urlsplit(origin).netloc != host:
        return "a page of another site may not change anything here"
    if peer is not None and not ipaddress.ip_address(peer).is_loopback:
        return "changes are accepted from this machine only"
    return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
