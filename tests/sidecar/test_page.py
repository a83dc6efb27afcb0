"""The page in a real browser, before a real fleet that is well, and before one that is not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import redis

from tests.kit.browser import Shown, show
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for
from tests.sidecar.conftest import Shop

StartShop = Callable[..., Shop]
# Longer than the script of the page waits.
REFRESHED_S = 7.0


def open_page(shop: Shop, *options: str, seconds: float = 1.0) -> Shown:
    return show(f"http://127.0.0.1:{shop.fleet.admin_port}/", *options, seconds=seconds)


def as_sent(shop: Shop) -> Shown:
    """Before any script: what is read without one."""
    return Shown(shop.ask("/").body.decode(), [])


def ask_all(shop: Shop, requests: int = 60) -> None:
    """Asks every server; failures of theirs are what a test wants."""
    with shop.client() as client:
        pipe = client.pipeline(transaction=False)
        for number in range(requests):
            pipe.get(hashlib.sha256(bytes([number])).hexdigest())
        pipe.execute(raise_on_error=False)


def test_a_fleet_that_is_well(start_shop: StartShop) -> None:
    shop = start_shop(workers=2)
    ask_all(shop)
    wait_for(lambda: "<polyline" in as_sent(shop).section("load"), "the plots begin")
    shown = open_page(shop, seconds=REFRESHED_S)
    assert shown.console == []
    assert ">serving<" in shown.dom
    # A machine that is busy with other tests makes workers late, of which a warning tells.
    assert "Nothing hurts" in shown.section("pains") or "is late by" in shown.section("pains")
    assert 'class="bad"' not in shown.section("pains")
    assert "reload-failed" not in shown.dom
    assert (shown.rows("fleet"), shown.rows("instances"), shown.rows("nodes")) == (2, 1, 2)
    assert "worker.ready" in shown.section("events")
    assert shown.rows("settings") > 20
    assert shown.dom.count("<svg") >= 5 and "<polyline" in shown.section("load")
    assert "stale" not in re.search(r"<html[^>]*>", shown.dom)[0]  # type: ignore[index]
    assert "<script>alert" not in shown.dom
    assert 'title="hyper_proxy_node_requests_total"' in shown.section("nodes")


def test_reading_needs_no_script(start_shop: StartShop) -> None:
    shop = start_shop()
    ask_all(shop)
    shown = as_sent(shop)
    assert (shown.rows("fleet"), shown.rows("instances"), shown.rows("nodes")) == (1, 1, 2)
    wait_for(lambda: "<polyline" in as_sent(shop).section("load"), "the plots begin")


def test_a_refused_reload_is_a_red_banner_with_its_place(start_shop: StartShop) -> None:
    shop = start_shop()
    shop.fleet.write(shop.config.replace("read_ms", "raed_ms"))
    assert not shop.fleet.reload().accepted
    lines = shop.fleet.file.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "raed_ms" in text)
    shown = open_page(shop)
    assert shown.console == []
    banner = shown.section("reload-failed")
    assert 'role="alert"' in banner and "FAILED" in banner
    assert f"{shop.fleet.file}:{line}" in banner
    assert "did you mean 'read_ms'" in banner
    assert "reload.refused" in shown.section("events")

    shop.fleet.write(shop.config)
    assert shop.fleet.reload().accepted
    assert open_page(shop).section("reload-failed") == ""


def test_a_dead_server_is_where_it_hurts(
    start_shop: StartShop, own: Callable[[Running], Running], redis_nodes: list[Running]
) -> None:
    dead = own(redis_server())
    shop = start_shop(servers=[dead, redis_nodes[0]])
    ask_all(shop)
    dead.kill()

    def hurts() -> bool:
        ask_all(shop)
        pains = shop.ask("/?format=json").json["pains"]
        return any(pain["where"] == "nodes" and pain["since"] for pain in pains)

    wait_for(hurts, "the page knows of it, and since when", 20)
    shown = open_page(shop)
    assert shown.console == []
    assert ">serving, with errors<" in shown.dom
    pains = shown.section("pains")
    assert "server plain of instance shop" in pains and "since" in pains
    assert "refused" in pains
    first = re.search(r"<tbody>.*?</tr>", shown.section("nodes"), re.DOTALL)
    assert first is not None and ">plain<" in first[0] and "✖" in first[0], "the one in trouble is the first"
    assert "node.failing" in shown.section("events")
    told = {event["event"] for event in shop.ask("/events").json["events"]}
    assert {"node.failing", "node.down"} <= told, "ctl show events says what the page says"


def test_a_worker_that_died_is_told_of(start_shop: StartShop) -> None:
    shop = start_shop()
    shop.fleet.kill_worker()
    shop.fleet.wait_log("worker.ended")
    wait_for(shop.fleet.is_ready, "its successor serves")
    with redis.Redis(port=shop.port, protocol=2, password="hush") as client:
        client.get("k")
    shown = open_page(shop)
    assert "was replaced" in shown.section("pains") and "KILL" in shown.section("pains")
    assert "KILL" in shown.section("fleet")
