"""Nothing is lost, doubled, stale or back from the dead, whatever happens while keys move under writing clients."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Event, Thread

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.front.reshard import idle
from tests.front.reshard.conftest import LEAD_S, Moving
from tests.front.reshard.writers import Writers, read
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.kit.wait import wait_for

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


def verify(move: Moving, writers: Writers, names: str) -> None:
    """End the writers; every key is what its writer says, at one server, which the rest of the fleet's life goes by."""
    model = writers.end()
    client = move.client()
    assert {key: read(client, key) for key in model} == model
    move.load(move.config("", names))
    client = move.client()
    assert {key: read(client, key) for key in model} == model
    kept = move.kept()
    assert sum(map(len, kept)) == len(set.union(*kept)), "a key is at two servers"


def test_two_servers_become_three_under_load(moving: Callable[..., Moving]) -> None:
    """The tool is killed and run again; a worker is killed."""
    move = moving()
    began = time.monotonic()
    idle.fill(move.client())
    writers = move.writers(4)
    writers.go_on()
    move.begin()
    writers.go_on()
    assert all("begin anew" in error for error in writers.errors()), writers.errors()
    tool = move.tool("--rate", "2000", "--json")
    wait_for(lambda: len(move.kept()[2]) > 1500, "it moves keys", 30)
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    move.fleet.kill_worker()
    writers.go_on()
    tool = move.tool("--rate", "3000")
    wait_for(lambda: len(move.kept()[2]) > 4000, "it goes on", 30)
    tool.send_signal(signal.SIGINT)
    text, _ = tool.communicate(timeout=20)
    assert (tool.returncode, "run it again" in text.lower()) == (130, True), text
    status, text = move.reshard()
    assert status == 0, text
    assert f"servers = [{move.listed('abc')}]" in text
    verify(move, writers, "abc")
    kept = move.kept()
    assert min(map(len, kept)) > 4000
    idle.check([move.to(server) for server in move.servers], kept, began)


@pytest.mark.parametrize("frozen", [False, True], ids=["killed", "frozen"])
def test_a_new_server_that_fails_meanwhile(moving: Callable[..., Moving], frozen: bool) -> None:
    move = moving(*DURABLE)
    began = time.monotonic()
    idle.fill(move.client(), 3000)
    writers = move.writers(3)
    move.begin()
    writers.go_on()
    if frozen:
        move.new.freeze()
    else:
        move.new.kill()
    client = move.client()
    key = next(f"idle:{number}" for number in range(0, 3000, 6) if _fails(client, f"idle:{number}"))
    with pytest.raises(redis.ResponseError, match=rf"node '[ab] .*was not sent: .* to c \({move.new.address}\): "):
        client.get(key)
    if not frozen:
        status, text = move.reshard("--timeout-ms", "100")
        assert status == 1 and f"c ({move.new.address})" in text
    wait_for(writers.errors, "the writers were told", 20)
    if frozen:
        move.new.thaw()
    else:
        move.new.start()
    wait_for(lambda: not _fails(client, key), "it is used again", 20)
    writers.go_on()
    status, text = move.reshard()
    assert status == 0, text
    verify(move, writers, "abc")
    idle.check([move.to(server) for server in move.servers], move.kept(), began, 3000)


def test_two_fleets_whose_clocks_differ(moving: Callable[..., Moving]) -> None:
    """All clients of both count the same keys: what was answered was done, once."""
    move = moving()
    port = free_port()
    keys = [f"{number}:count" for number in range(60)]
    stop, faults = Event(), []
    done = [0] * 4

    def count(index: int, to: int) -> None:
        client = redis.Redis(port=to, socket_timeout=20, retry=Retry(NoBackoff(), 0))
        try:
            while not stop.is_set():
                with client.pipeline(transaction=False) as pipeline:
                    for key in keys:
                        pipeline.incr(key)
                    pipeline.execute()
                done[index] += 1
        except redis.RedisError as error:
            faults.append(repr(error))

    with Fleet(move.config("", port=port), move.folder) as other:
        clients = [Thread(target=count, args=(index, [move.port, port][index % 2])) for index in range(len(done))]
        for client in clients:
            client.start()
        move.announce(LEAD_S + 5)  # two reloads
        other.write(move.config(move.route(0.4), port=port))
        assert other.reload().accepted
        move.wait_until(move.begins + timedelta(seconds=1.5))
        stop.set()
        for client in clients:
            client.join()
        assert faults == []
        assert move.client().mget(keys) == [b"%d" % sum(done)] * len(keys)
        assert len(move.kept()[2]) > 10


def _fails(client: redis.Redis, key: str) -> bool:
    try:
        client.get(key)
    except redis.ResponseError:
        return True
    return False


def test_going_back_in_the_middle(moving: Callable[..., Moving]) -> None:
    move = moving()
    began = time.monotonic()
    idle.fill(move.client(), 12_000)
    writers = move.writers(4)
    move.begin()
    tool = move.tool("--rate", "500")
    wait_for(lambda: len(move.kept()[2]) > 1000, "it moves keys", 30)
    move.announce_back()
    text, _ = tool.communicate(timeout=20)
    assert tool.returncode == 1 and "has changed" in text
    writers.go_on()
    move.wait_until(move.back)
    writers.go_on()
    status, text = move.reshard("--rate", "5000")
    assert status == 0, text
    assert f"servers = [{move.listed('ab')}]" in text
    assert move.kept()[2] == set()
    verify(move, writers, "ab")
    idle.check([move.to(server) for server in move.servers], move.kept(), began, 12_000)
