"""Who may give orders to a real fleet: with a token, on a unix socket, from pages of others."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.wait import wait_for
from tests.sidecar.conftest import Shop

StartShop = Callable[..., Shop]


def with_admin(shop: Shop, *lines: str) -> str:
    """Its configuration with more in [admin]."""
    listen = re.search(r"^listen = .*$", shop.fleet.file.read_text().partition("[admin]")[2], re.MULTILINE)
    assert listen is not None
    return "\n".join([shop.config, "[admin]", listen[0], *lines, ""])


def test_a_token_is_asked_for_from_the_reload_on_that_sets_it(start_shop: StartShop) -> None:
    shop = start_shop()
    assert shop.ask("/reload", "POST").status == 200
    shop.fleet.write(with_admin(shop, 'token = "sesame"'))
    assert shop.ask("/reload", "POST").status == 200
    refused = shop.ask("/reload", "POST")
    assert (refused.status, "token" in refused.json["error"]) == (401, True)
    assert shop.ask("/reload", "POST", Authorization="Bearer sesam").status == 401
    assert shop.ask("/reload", "POST", Authorization="Bearer sesame").status == 200
    assert shop.ask("/stats").status == 200, "reading needs none"
    assert b"sesame" not in shop.ask("/config").body + shop.ask("/").body
    assert "sesame" not in shop.fleet.read_log()


def test_pages_of_others_and_foreign_names_are_refused(start_shop: StartShop) -> None:
    shop = start_shop()
    assert shop.ask("/reload", "POST", Origin="http://evil.example").status == 403
    assert shop.ask("/reload", "POST", Sec_Fetch_Site="cross-site").status == 403
    assert shop.ask("/reload", "POST", Origin="http://[").status == 403
    assert shop.ask("/", Host="evil.example").status == 403
    assert shop.ask("/", Host="[").status == 403
    own = f"http://127.0.0.1:{shop.fleet.admin_port}"
    assert shop.ask("/reload", "POST", Origin=own, Sec_Fetch_Site="same-origin").status == 200
    assert shop.ask("/stats").json["config"]["generation"] == 1


FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@pytest.mark.parametrize(
    ("target", "kind", "body", "said"),
    [
        ("/stop", FORM, "fats=yes", "there is no field 'fats'; known are fast"),
        ("/drain", FORM, "instance=shop", "there is no field 'instance'; it has none"),
        ("/log-level", JSON, '{"lvl": "debug"}', "there is no field 'lvl'; known are level"),
        ("/workers", JSON, '{"change": "+1"', "the body is neither a JSON object nor a form, or Content-Type says"),
        ("/workers", JSON, '["+1"]', "the body is neither a JSON object nor a form"),
        ("/workers", "text/plain", "change=+1", "the body is neither a JSON object nor a form"),
        ("/workers", FORM, '{"change": "+1"}', "known are change; a JSON object has Content-Type: application/json"),
        ("/workers", FORM, "change=%2B1&change=-1", "the field 'change' is given more than once"),
        ("/workers?change=+1", FORM, "", "an order has its fields in the body, not in the query"),
    ],
)
def test_an_order_that_says_what_nobody_understands_is_not_obeyed(
    target: str, kind: str, body: str, said: str, start_shop: StartShop
) -> None:
    shop = start_shop()
    answer = shop.ask(target, "POST", body, Content_Type=kind)
    assert (answer.status, said in answer.json["error"]) == (400, True), answer.json
    stats = shop.ask("/stats").json
    assert (stats["master"]["state"], len(stats["workers"]), stats["overrides"]["drained"]) == ("running", 1, None)
    assert "operator.order" not in shop.fleet.read_log()


def ask_unix(path: Path, method: str, target: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(path))
    connection.request(method, target)
    response = connection.getresponse()
    answer = response.status, response.read()
    connection.close()
    return answer


def test_the_sidecar_moves_to_a_unix_socket_and_takes_orders_there(start_shop: StartShop, tmp_path: Path) -> None:
    shop = start_shop()
    path = tmp_path / "admin.sock"
    shop.fleet.write(f'{shop.config}\n[admin]\nlisten = "unix:{path}"\n')
    assert shop.ask("/reload", "POST").status == 200
    wait_for(path.exists, "the socket")
    status, body = ask_unix(path, "GET", "/stats")
    assert (status, json.loads(body)["config"]["generation"]) == (200, 2)
    status, body = ask_unix(path, "POST", "/reload")
    assert (status, json.loads(body)["ok"]) == (200, True)
    assert ask_unix(path, "GET", "/")[0] == 200
