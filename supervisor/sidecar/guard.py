"""Who may ask the sidecar: pages of strangers must not reach it through an operator's browser.

DNS rebinding: a page of evil.example whose name suddenly means 127.0.0.1 sends its own name as Host. A Host that is
an address, or localhost, or the host of [admin] listen, can't be one. Cross-site requests: a browser names the page's
Origin with every POST, and whether it is the same site (Sec-Fetch-Site); only the sidecar's own pages may. Changes
need the token of [admin] token; where none is set they are accepted from this machine alone. Where one is set, this
machine needs it too: behind a proxy everybody seems to come from here.
"""

from __future__ import annotations

import hmac
import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

READING = frozenset({"GET", "HEAD", "OPTIONS"})
_BEARER = "Bearer "

FORBIDDEN, UNAUTHORIZED = 403, 401


@dataclass(frozen=True, slots=True)
class Visit:
    """What is known of a request. `peer` is None for a client of a unix socket."""

    method: str
    host: str
    peer: str | None = None
    origin: str | None = None
    fetch_site: str | None = None
    authorization: str = ""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, and the status of the answer."""

    status: int
    reason: str


def refuse_visitor(visit: Visit, own_host: str) -> Refusal | None:
    """Why a request is refused whatever it wants; None when it is not."""
    name = _host_name(visit.host)
    if not (name == "localhost" or (own_host and name == own_host.lower()) or _is_address(name)):
        text = f"the Host header names '{visit.host}': use an address, localhost or the host of [admin] listen"
        return Refusal(FORBIDDEN, text)
    if visit.method in READING:
        return None
    foreign = visit.origin is not None and _place(visit.origin) != visit.host.lower()
    if foreign or visit.fetch_site not in (None, "same-origin", "none"):
        return Refusal(FORBIDDEN, "a page of another site may not change anything here")
    return None


def refuse_change(visit: Visit, token: str) -> Refusal | None:
    """Why a request that is not refused as such may change nothing. `token` is that of [admin] token."""
    if visit.method in READING:
        return None
    if token:
        given = visit.authorization.removeprefix(_BEARER).strip() if visit.authorization.startswith(_BEARER) else ""
        if hmac.compare_digest(given.encode(), token.encode()):
            return None
        return Refusal(UNAUTHORIZED, "changes need the token of [admin] token: Authorization: Bearer TOKEN")
    if visit.peer is not None and not _is_loopback(visit.peer):
        return Refusal(FORBIDDEN, "changes are accepted from this machine only, as long as [admin] token is not set")
    return None


def _host_name(host: str) -> str:
    """Without port and brackets, in lower case; "" of what is no host."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place(origin: str) -> str:
    """Host and port of an Origin; "" of what is none ("null", nonsense)."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(peer: str) -> bool:
    address = ipaddress.ip_address(peer.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
