"""Who may read and who may change: the rules, without a network."""

from __future__ import annotations

import pytest

from supervisor.sidecar.guard import Visit, refuse_change, refuse_visitor

TOKEN = "open sesame"


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("127.0.0.1:22122", True),
        ("[::1]:22122", True),
        ("localhost", True),
        ("LocalHost:1", True),
        ("proxy.example:22122", True),
        ("Proxy.Example:22122", True),
        ("evil.example:22122", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
        ("[", False),
        ("[::1", False),
    ],
)
def test_a_host_that_could_be_rebound_is_refused(host: str, allowed: bool) -> None:
    assert (refuse_visitor(Visit("GET", host), "proxy.example") is None) is allowed


def test_a_unix_socket_has_no_host_of_its_own() -> None:
    assert refuse_visitor(Visit("GET", "localhost"), "") is None
    assert refuse_visitor(Visit("GET", ""), "") is not None


@pytest.mark.parametrize(
    ("origin", "site", "allowed"),
    [
        (None, None, True),
        ("http://127.0.0.1:22122", "same-origin", True),
        ("http://127.0.0.1:22122", None, True),
        ("http://127.0.0.1:1", None, False),
        ("http://evil.example", None, False),
        ("http://evil.example", "same-origin", False),
        ("null", None, False),
        ("http://[", None, False),
        ("", None, False),
        (None, "cross-site", False),
        (None, "same-site", False),
        (None, "none", True),
    ],
)
def test_pages_of_others_change_nothing(origin: str | None, site: str | None, allowed: bool) -> None:
    visit = Visit("POST", "127.0.0.1:22122", "127.0.0.1", origin, site)
    assert (refuse_visitor(visit, "") is None) is allowed


@pytest.mark.parametrize(
    ("peer", "allowed"),
    [("127.0.0.1", True), ("127.1.2.3", True), ("::1", True), ("::ffff:127.0.0.1", True), (None, True),
     ("10.0.0.7", False), ("::ffff:10.0.0.7", False), ("fe80::1%eth0", False)],
)  # fmt: skip
def test_without_a_token_changes_come_from_this_machine(peer: str | None, allowed: bool) -> None:
    assert (refuse_change(Visit("POST", "x", peer), "") is None) is allowed
    assert refuse_change(Visit("GET", "x", peer), "") is None


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.7", None])
@pytest.mark.parametrize(
    ("authorization", "allowed"),
    [(f"Bearer {TOKEN}", True), ("Bearer other", False), (TOKEN, False), ("", False), ("Bearer ", False),
     ("Bearer \xff", False)],
)  # fmt: skip
def test_with_a_token_everybody_needs_it(peer: str | None, authorization: str, allowed: bool) -> None:
    refusal = refuse_change(Visit("POST", "x", peer, authorization=authorization), TOKEN)
    assert (refusal is None) is allowed
    assert refusal is None or refusal.status == 401
