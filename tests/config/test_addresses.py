"""What is written as an address is read as that address, and everything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.config.addresses import MAX_WEIGHT, read_file, read_listen, read_server
from hyper_proxy.config.model import Listen, Server

_NAMES = st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?\Z")
# What consists of numbers is an address, or nothing.
_HOSTS = _NAMES.filter(lambda name: not name.replace(".", "").isdecimal()) | st.ip_addresses().map(str)
_PATHS = st.from_regex(r"\A(/[a-z0-9_.]{1,12}){1,4}\Z")
_PORTS = st.integers(1, 65535)
_PLACES = st.builds(Listen, host=_HOSTS, port=_PORTS) | st.builds(Listen, path=_PATHS)


@given(_PLACES)
def test_a_listener_reads_as_it_is_shown(listen: Listen) -> None:
    assert read_listen(listen.address) == listen


@given(_PLACES, st.integers(1, MAX_WEIGHT), st.from_regex(r"\A([!-~]{1,10})?\Z"))
def test_a_server_reads_as_it_is_shown(place: Listen, weight: int, alias: str) -> None:
    text = f"{place.address}:{weight}{' ' if alias else ''}{alias}"
    expected = Server(place.host, place.port, place.path, weight, alias)
    assert read_server(text) == expected
    assert expected.label == (alias or place.address)


@given(_PLACES)
def test_weight_and_alias_may_be_left_out(place: Listen) -> None:
    assert read_server(place.address) == Server(place.host, place.port, place.path)


def test_a_file_starts_from_the_folder_of_the_configuration() -> None:
    assert read_file("data/a b.db", "/etc/hp").address == "/etc/hp/data/a b.db"
    assert read_file("../a.db", "/etc/hp").address == "/etc/a.db"
    assert read_file("/var/a.db", "/etc/hp").address == "/var/a.db"


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "localhost", "localhost:", ":6379", "a:0", "a:65536", "a:-1", "a:6379x", "a:٣", "a b:1", "-a:1",
        "*:6379", "unix:", "unix:a.sock", "unix:/run/", "/run/a.sock", "[::1]", "[::1]6379", "[::1:6379", "[]:6379",
        "[x]:6379", "::1:6379", "redis://a:6379", "a:6379:1", "unix:/" + "x" * 107,
    ],
)  # fmt: skip
def test_what_is_no_listener_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_listen(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a:1:", "a:1:0", "a:1:-1", "a:1:x", "a:1:1.5", "a:1:1:1", f"a:1:{MAX_WEIGHT + 1}", "a:1 b c",
        "a:1 é", "/run/a.sock:1 x", "unix:/run/a.sock:0", "unix:/run/a.sock:", "unix:a:1", "redis://a:1",
    ],
)  # fmt: skip
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_server(text)
