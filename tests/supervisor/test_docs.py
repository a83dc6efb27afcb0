"""docs/operations.md says what the tables of the code say."""

from __future__ import annotations

import pytest

from hyper_proxy.cli.ctl_orders import ORDERS, usage
from supervisor.sidecar.app import PAGES
from supervisor.signals import IGNORE, SIGNALS
from tests.kit.fleet import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text()
ROWS = [
    *(f"| {row.number.name.removeprefix('SIG')} | {row.help} |" for row in SIGNALS),
    *(f"| {page.method} {page.path} | {page.help} |" for page in PAGES),
    *(f"| {usage(verb)} | {order.help} |" for verb, order in ORDERS.items()),
]


@pytest.mark.parametrize("row", ROWS)
def test_each_row_of_the_tables_is_documented(row: str) -> None:
    assert row in TEXT


def test_every_order_of_ctl_is_a_page() -> None:
    pages = {(page.method, page.path) for page in PAGES}
    assert {(order.method, order.path) for order in ORDERS.values()} <= pages


def test_what_is_ignored_says_so() -> None:
    assert {row.help for row in SIGNALS if row.action == IGNORE} == {"ignored"}
