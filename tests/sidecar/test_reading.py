"""What a real fleet's sidecar shows: counters, settings, events; and that nothing foreign becomes markup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit.wait import wait_for
from tests.sidecar.conftest import HOSTILE, Shop

StartShop = Callable[..., Shop]


def test_stats_of_one_worker_one_instance_one_node(start_shop: StartShop) -> None:
    shop = start_shop(workers=2)
    with shop.client() as client:
        for number in range(40):
            client.get(f"key{number}")
    stats = shop.ask("/stats").json
    assert stats["schema"] == 1
    assert len(stats["workers"]) == 2
    parts = [shop.ask(f"/stats?worker={slot}").json for slot in (0, 1)]
    assert [[row["slot"] for row in part["workers"]] for part in parts] == [[0], [1]]
    reads = [part["instances"]["shop"]["requests"]["read"] for part in parts]
    assert sorted(reads) == [0, 40]
    assert stats["instances"]["shop"]["requests"]["read"] == 40
    node = shop.ask("/stats?instance=shop&node=plain").json["instances"]
    assert list(node) == ["shop"] and list(node["shop"]["nodes"]) == ["plain"]


@pytest.mark.parametrize("query", ["worker=7", "instance=other", "node=other", "instance=shop&node=other"])
def test_what_is_not_there_is_not_found(start_shop: StartShop, query: str) -> None:
    answer = start_shop().ask(f"/stats?{query}")
    assert answer.status == 404
    assert answer.json["error"].startswith("there is no ")


def test_wrong_paths_methods_and_numbers_get_small_json_errors(start_shop: StartShop) -> None:
    shop = start_shop()
    nowhere = shop.ask("/nowhere")
    assert (nowhere.status, "GET /stats" in nowhere.json["routes"]) == (404, True)
    method = shop.ask("/stats", "DELETE")
    assert (method.status, method.json["error"]) == (405, "/stats is for GET, not DELETE")
    assert "GET" in method.headers["allow"]
    assert shop.ask("/stats?worker=x").status == 400
    for path, said in (
        ("/stats?inst=shop", "/stats: there is no parameter 'inst'; known are worker, instance, node"),
        ("/clients?limit=1&slot=0", "/clients: there is no parameter 'slot'; known are instance, worker, limit"),
        ("/hotkeys?instance=shop", "/hotkeys: there is no parameter 'instance'; known are limit"),
        ("/config?x", "/config: there is no parameter 'x'; it has none"),
        ("/stats?worker=0&worker=1", "/stats: the parameter 'worker' is given more than once"),
    ):
        misspelt = shop.ask(path)
        assert (misspelt.status, misspelt.json) == (400, {"error": said})
    assert shop.ask("/static/../app.py").status == 404
    assert "Traceback" not in shop.fleet.read_log()


def rows_of(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in answer["settings"]}


def test_settings_have_value_default_line_and_kind_and_a_reload_shows_as_difference(start_shop: StartShop) -> None:
    shop = start_shop()
    before = shop.ask("/config").json
    rows = rows_of(before)
    text = shop.fleet.file.read_text().splitlines()
    read = rows["instance[shop].level[0].timeout.read_ms"]
    assert (read["value"], read["default"], read["hot"]) == ("500", "200", True)
    assert "read_ms = 500" in text[read["line"] - 1]
    queue = rows["instance[shop].level[0].timeout.queue_ms"]
    assert (queue["value"], queue["line"]) == ("200", 0)
    assert rows["proxy.pidfile"]["hot"] is False
    assert rows["instance[shop].password"]["value"] == '"***"'
    assert before["changes"] == {"from": 0, "to": 1, "settings": []}

    changed = shop.config.replace("read_ms = 500", "read_ms = 501").replace('"hush"', '"hushhush"')
    shop.fleet.write(changed)
    assert shop.fleet.reload().accepted
    changes = shop.ask("/config").json["changes"]
    assert (changes["from"], changes["to"]) == (1, 2)
    found = {row["key"]: (row["before"], row["after"]) for row in changes["settings"]}
    assert found == {
        "instance[shop].level[0].timeout.read_ms": ("500", "501"),
        "instance[shop].password": ('"***"', '"***"'),
    }
    assert b"hush" not in shop.ask("/config").body + shop.ask("/").body


def test_events_tell_of_reloads_deaths_and_who_ordered(start_shop: StartShop) -> None:
    shop = start_shop()
    shop.ask("/reload", "POST", User_Agent="hand of ann")
    shop.fleet.kill_worker()
    shop.fleet.wait_log("worker.ended")
    wait_for(shop.fleet.is_ready, "the worker is back")
    events = {event["event"]: event["fields"] for event in shop.ask("/?format=json").json["events"]}
    assert events["operator.order"]["verb"] == "reload"
    assert "hand of ann" in events["operator.order"]["who"]
    assert "reload.done" in events
    assert "KILL" in events["worker.ended"]["cause"]


def test_nothing_foreign_becomes_markup(start_shop: StartShop) -> None:
    shop = start_shop()
    with shop.client() as client:
        client.get("k")
    page = shop.ask("/")
    assert page.status == 200
    text = page.body.decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert HOSTILE not in text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "http://" not in text.replace("&#39;", "") and "https://" not in text, "an address of elsewhere"


def test_the_page_as_json_is_what_the_page_shows(start_shop: StartShop) -> None:
    shop = start_shop()
    view = shop.ask("/?format=json").json
    assert (view["state"]["word"], view["pains"]) == ("serving", [])
    assert [row["node"] for row in view["nodes"]] == ["plain", HOSTILE] or len(view["nodes"]) == 2
    assert view["config"]["digest"] and view["config"]["generation"] == 1


@pytest.mark.parametrize("path", ["/slowlog", "/hotkeys", "/bigkeys"])
def test_notable_things_have_pages(start_shop: StartShop, path: str) -> None:
    answer = start_shop().ask(path)
    assert answer.status == 200
    assert len(answer.json.keys() - {"fleet"}) == 1
