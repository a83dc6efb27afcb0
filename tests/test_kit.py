"""The helpers that many tests trust."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from types import ModuleType

from scripts.benchmark.sides import Arena
from tests.kit.pieces import all_ways, trailing
from tests.kit.plain import both, plain
from tests.kit.ports import free_port
from tests.kit.servers import Running


def test_a_plain_module_comes_from_its_source_and_leaves_the_built_one_alone() -> None:
    built = importlib.import_module("hyper_proxy.stats.histogram")
    source = plain("hyper_proxy.stats.histogram")
    assert source.__file__ is not None and source.__file__.endswith("histogram.py")
    assert importlib.import_module("hyper_proxy.stats.histogram") is built
    assert vars(importlib.import_module("hyper_proxy.stats"))["histogram"] is built
    assert plain("hyper_proxy.stats.histogram") is source


@both("hyper_proxy.stats.histogram", "hyper_proxy.stats.instance")
def test_both_forms_of_several_modules_come_together(module: tuple[ModuleType, ModuleType]) -> None:
    histogram, instance = module
    assert type(instance.InstanceStats(("read",)).latency[0]) is histogram.Histogram


def test_pieces_are_the_same_bytes() -> None:
    assert {b"".join(pieces) for pieces in all_ways(b"abcd")} == {b"abcd"}
    assert list(trailing(b"ab", b"xyz")) == [b"abx", b"abxy"]


def test_real_servers_answer(redis_nodes: list[Running], memcached_nodes: list[Running]) -> None:
    assert [node.ask(b"DBSIZE\r\n") for node in redis_nodes] == [b":0\r\n"] * 3
    assert [node.ask(b"mn\r\n") for node in memcached_nodes] == [b"MN\r\n"] * 3


def test_no_port_is_given_twice_in_a_row() -> None:
    assert len({free_port() for _ in range(500)}) == 500


def test_no_side_of_the_benchmark_shares_a_session_with_another_process(tmp_path: Path) -> None:
    """Linux shares out busy cores by sessions first."""
    with Arena(tmp_path) as arena:
        servers = [node.pid for nodes in arena.nodes.values() for node in nodes]
        pids = [os.getpid(), *servers, *arena.twemproxy().pids.values(), arena.fleet(1).pids["redis"]]
        assert len({os.getsid(pid) for pid in pids}) == len(pids)
