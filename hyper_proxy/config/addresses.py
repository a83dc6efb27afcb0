"""Reading the texts that name a place: listeners, servers, database files.

    listener   "0.0.0.0:6380"  "[::1]:6380"  "unix:/run/hyper_proxy/user.sock"
    server     "10.0.0.1:6379"  "10.0.0.1:6379:2 alias"  "unix:/run/a.sock:1 alias"      (address[:weight][ alias])
    file       "data/shop.db"  "data/shop alias"                                         (an alias in plug-ins only)
    rooms      "----" between the servers of the first room and those of the second

Raises ValueError with a text for people; resolves nothing and opens nothing.
"""

from __future__ import annotations

import os
import re
import socket

from hyper_proxy.config.model import Listen, Server

ROOMS = "----"
SECOND = "@second"
"""Follows the name of a server of the second room where one of the first has the same."""
MAX_PORT = 65535
MAX_WEIGHT = 1_000_000
"""Rings and tables grow with the sum of weights; this is already far beyond any use."""
MAX_SOCKET_PATH = 107
"""sun_path of unix(7) has 108 bytes, the last one is 0."""

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?")
_V6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:%[A-Za-z0-9_.-]+)?")
_DOTTED = re.compile(r"[0-9]+(?:\.[0-9]+){3,}")
_ALIAS = re.compile(r"[!-~]+")
_NO_FILE = re.compile(r"[\w.-]*:[0-9]+(?::[0-9]+)?|:memory:|(?:unix|file):.*|\w+://.*")
"""What is no path though the system would take it for one: addresses, URLs, SQLite's word for no file."""
_TEMPLATE = "{{"
_EXPANDED = re.compile(r"[~$]|.*(?:\$\{|\{\{)")
"""What a shell or a template would put something in the place of."""


def read_listen(text: str) -> Listen:
    """An address to listen on."""
    _refuse_template(text, text)
    if text.startswith("unix:"):
        return Listen(path=_socket_path(text.removeprefix("unix:")))
    port_alone = text.removeprefix("*").removeprefix(":")
    if port_alone.isdecimal():
        raise ValueError(f"{text!r} has no address: for all of this machine write 0.0.0.0:{port_alone}")
    _refuse_bare_socket(text)
    host, port, rest = _host_and_port(text)
    if rest is not None:
        raise ValueError(f"{text!r} is not host:port or unix:/path")
    return Listen(host=host, port=port)


def read_server(text: str) -> Server:
    """A server reached over a socket: address, optional weight, optional alias."""
    place, blank, alias = text.strip().partition(" ")
    alias = alias.strip()
    _refuse_template(place, text)
    if "\t" in place:
        raise ValueError(f"{text!r}: a blank stands between address and alias, no tab")
    if blank and not _ALIAS.fullmatch(alias):
        raise ValueError(f"the alias {alias!r} must be one word of visible ASCII characters")
    if place.startswith("unix:"):
        path, colon, weight = place.removeprefix("unix:").rpartition(":")
        return Server(path=_socket_path(path if colon else weight), weight=_weight(weight) if colon else 1, name=alias)
    _refuse_bare_socket(place)
    host, port, rest = _host_and_port(place)
    return Server(host=host, port=port, weight=1 if rest is None else _weight(rest), name=alias)


def read_file(text: str, folder: str, *, named: bool = False) -> Server:
    """A storage that is a file or folder, relative to that of the configuration. named: an alias may follow it."""
    path, _, alias = text.partition(" ") if named else (text, "", "")
    if alias and not _ALIAS.fullmatch(alias):
        raise ValueError(f"the alias {alias!r} must be one word of visible ASCII characters")
    return Server(file=read_path(path, folder), name=alias)


def read_path(text: str, folder: str) -> str:
    """The whole path of a file or folder. What begins with ./ is taken as it is."""
    if not text or text.endswith("/") or not text.isprintable():
        raise ValueError(f"{text!r} is not the path of a file")
    if _NO_FILE.fullmatch(text):
        raise ValueError(f"{text!r} is not the path of a file; if it is meant, write './{text}'")
    if _EXPANDED.match(text):
        raise _unfilled(text, "write the whole path")
    return os.path.abspath(os.path.join(folder, text))


def _refuse_template(place: str, text: str) -> None:
    """Before anything else, for a blank in {{ host }}:6379 would be taken for the one before an alias."""
    if _TEMPLATE in place:
        raise _unfilled(text, "an address is wanted")


def _unfilled(text: str, wanted: str) -> ValueError:
    return ValueError(f"{text!r} would stay as it is, for nothing is expanded: {wanted}")


def _refuse_bare_socket(text: str) -> None:
    if text.startswith("/"):
        raise ValueError(f"write a unix socket as 'unix:{text}'")


def _refuse_slips(text: str) -> None:
    """What is written elsewhere, and not here."""
    scheme, is_url, rest = text.partition("://")
    if is_url:
        raise ValueError(f"write {rest.rpartition('@')[2].partition('/')[0]!r} without '{scheme}://'")
    if "," in text:
        raise ValueError(f"{text!r} is not one address: each is a string of its own in the list")
    if "@" in text:
        raise ValueError(f"{text!r} is not host:port: name and password have keys of their own, username and password")
    if "$" in text:
        raise _unfilled(text, "host:port is wanted")
    if " " in text:
        raise ValueError(f"{text!r} has a blank: host:port is wanted")
    if _V6.fullmatch(text) and ("::" in text or text.count(":") > 3):
        raise ValueError(f"{text!r} does not begin with an IPv6 address in brackets, as [::1]:6380 does")


def _host_and_port(text: str) -> tuple[str, int, str | None]:
    """host, port and what follows a second colon (None when there is none)."""
    _refuse_slips(text)
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or not _V6.fullmatch(host):
            raise ValueError(f"{text!r} does not begin with an IPv6 address in brackets")
        rest = rest.removeprefix(":") if rest.startswith(":") else ""
    else:
        host, _, rest = text.partition(":")
        if not _HOST.fullmatch(host):
            raise ValueError(f"{text!r} does not begin with a host name or address")
        if _DOTTED.fullmatch(host) and not _is_v4(host):
            raise ValueError(f"{host!r} is no address: four numbers up to 255 are")
    port, colon, tail = rest.partition(":")
    if not port:
        raise ValueError(f"{text!r} has no port: host:port is wanted")
    if not (port.isascii() and port.isdecimal()) or not 1 <= int(port) <= MAX_PORT:
        raise ValueError(f"the port {port!r} is not a number from 1 to {MAX_PORT}")
    return host, int(port), tail if colon else None


def _is_v4(host: str) -> bool:
    try:
        socket.inet_aton(host)
    except OSError:
        return False
    return True


def _weight(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= MAX_WEIGHT:
        alias = "; an alias stands behind a blank" if re.search("[A-Za-z]", text) else ""
        raise ValueError(f"the weight {text!r} is not a number from 1 to {MAX_WEIGHT}{alias}")
    return int(text)


def _socket_path(path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise ValueError(f"{path!r} is not the absolute path of a unix socket")
    size = len(path.encode())
    if size > MAX_SOCKET_PATH:
        raise ValueError(f"the path of a unix socket has at most {MAX_SOCKET_PATH} bytes, this one has {size}")
    return path
