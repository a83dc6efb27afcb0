"""Where it hurts, as the page says it, while servers are slow, out by order, or back again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from tests.fleet.test_down import REDIS, StartFleet, answers, get_fails, node
from tests.kit.fleet import ROOT, Fleet
from tests.kit.ports import free_port
from tests.kit.servers import Running, redis_server
from tests.kit.wait import wait_for

Own = Callable[[Running], Running]
LATE_S = 0.15
MANY = 40


def pains(fleet: Fleet) -> list[tuple[str, str]]:
    """Level and text, but for what a busy machine does to workers."""
    found = json.loads(fleet.http("GET", "/?format=json")[1])["pains"]
    return [(pain["level"], pain["text"]) for pain in found if not pain["text"].startswith("worker ")]


def test_a_slow_server_hurts(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    text = REDIS.format(workers=1, port=port, address=server.address, weight=1)
    fleet = start_fleet(text.replace("backoff", "timeout = { read_ms = 8000 }\n  backoff"))
    assert answers(port)
    server.freeze()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * MANY)
        wait_for(lambda: node(fleet)["in_flight"] > 0, "the server has the first")
        since = time.monotonic()
        wait_for(lambda: time.monotonic() - since > LATE_S, "they are late")
        server.thaw()
        wait_for(lambda: node(fleet)["in_flight"] == 0, "they are answered")
    slow = "server a of instance user is slow: "
    wait_for(lambda: any(pain[1].startswith(slow) for pain in pains(fleet)), "the page says so")


def test_what_is_over_does_not_alarm(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(REDIS.format(workers=1, port=port, address=server.address, weight=1))
    wait_for(lambda: fleet.http("GET", "/?format=json")[0] == 200 and answers(port), "there was a sample")
    server.kill()
    get_fails(port)
    wait_for(lambda: any(pain[0] == "bad" for pain in pains(fleet)), "it hurts")
    server.start()
    wait_for(lambda: answers(port), "the server is back")
    wait_for(lambda: not any(pain[0] == "bad" for pain in pains(fleet)), "it is over", 25)


def test_an_order_is_one_line_and_no_alarm(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    fleet = start_fleet(REDIS.format(workers=1, port=port, address=server.address, weight=1))
    assert answers(port)
    words = [sys.executable, "-m", "hyper_proxy.cli.main", "ctl", "-c", str(fleet.file), "node", "drain", "user", "a"]
    subprocess.run(words, cwd=ROOT, env=os.environ, timeout=30, check=True)
    get_fails(port)
    ((level, text),) = pains(fleet)
    assert level == "warning"
    assert text.startswith("server a of instance user: drained by order of ")


def test_nobody_says_that_nothing_hurts_below_a_refused_reload(start_fleet: StartFleet, own: Own) -> None:
    server, port = own(redis_server()), free_port()
    text = REDIS.format(workers=1, port=port, address=server.address, weight=1)
    fleet = start_fleet(text)
    fleet.write(text.replace("backoff", "bakcoff"))
    assert not fleet.reload().accepted
    assert ("warning", "the last reload was refused; generation 1 goes on serving") in pains(fleet)
    assert b"Nothing hurts" not in fleet.http("GET", "/")[1]
