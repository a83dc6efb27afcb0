"""Servers out of service in one worker: what is ordered while a configuration is on its way holds in it, too."""

from __future__ import annotations

import pytest

from hyper_proxy.config.load import load_text
from hyper_proxy.config.model import Config
from hyper_proxy.config.overrule import overruled
from hyper_proxy.engine import Engine


def config(storage: str = "redis", connect_ms: int = 50) -> Config:
    """Two servers that nobody asks."""
    return load_text(
        f"""[[instance]]
name = "shop"
protocol = "{storage}"
listen = ["127.0.0.1:6380"]
  [[instance.level]]
  storage = "{storage}"
  servers = ["127.0.0.1:1:1 a", "127.0.0.1:2:1 b"]
  timeout = {{ connect_ms = {connect_ms} }}
""",
        "shop.toml",
    )


def out_of(engine: Engine) -> dict[str, str]:
    """The state of each server."""
    return {node.label: node.out for node in engine.fronts["shop"].snapshot.storage.nodes}


@pytest.mark.parametrize("storage", ["redis", "memcache"])
def test_an_order_between_prepare_and_commit_is_not_forgotten(storage: str) -> None:
    engine = Engine(config(storage), 0)
    prepared = engine.prepare(config(storage, 60))
    engine.overrule({"shop": {"a": "drained"}}, {})
    assert out_of(engine) == {"a": "drained", "b": ""}
    engine.commit(prepared)
    assert out_of(engine) == {"a": "drained", "b": ""}
    engine.overrule({}, {})
    assert out_of(engine) == {"a": "", "b": ""}


def test_only_the_servers_that_are_meant_change_and_counters_go_on() -> None:
    engine = Engine(config(), 0)
    a, b = engine.fronts["shop"].snapshot.storage.nodes
    a.error("timeout", "for the test")
    placement = engine.fronts["shop"].snapshot.placement
    engine.overrule({"shop": {"a": "maintenance", "gone": "drained"}, "gone": {"a": "drained"}}, {})
    new_a, new_b = engine.fronts["shop"].snapshot.storage.nodes
    assert new_b is b
    assert new_a is not a
    assert new_a.errors["timeout"] == 1
    assert engine.fronts["shop"].snapshot.placement is placement, "keys stay where they are"
    engine.overrule({"shop": {"a": "maintenance"}}, {})
    assert next(iter(engine.fronts["shop"].snapshot.storage.nodes)) is new_a, "nothing has changed"


def test_a_file_stays_in_service() -> None:
    text = """[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:6380"]
  [[instance.level]]
  storage = "sqlite"
  servers = ["/nowhere/a.db"]
"""
    instance = load_text(text, "shop.toml").instances[0]
    assert overruled(instance, {"/nowhere/a.db": "drained"}) == instance
