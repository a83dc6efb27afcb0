"""What may be said of the levels of an instance, and what is refused because it could not be kept."""

from __future__ import annotations

import pytest

from tests.config.texts import findings

FRONT = """\
[proxy]
workers = {workers}

[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:6380"]

[[instance.level]]
storage = "{storage}"
servers = ["10.0.0.1:6379"]
{above}

[[instance.level]]
storage = "{last}"
servers = ["{server}"]
{below}
"""
OTHER = """
[[instance]]
name = "other"
protocol = "memcache"
listen = ["127.0.0.1:11311"]

[[instance.level]]
storage = "sqlite"
servers = ["keys.db"]
"""


LAST = ("sqlite", "keys.db")


def text(
    *above: str, below: str = "", storage: str = "redis", workers: int = 1, last: tuple[str, str] = LAST
) -> str:
    """Two levels, with these lines in the first one and in the last one."""
    kind, server = last
    told = "\n".join(above) + ("\nlushan_db = 1" if storage == "lushan" else "")
    return FRONT.format(workers=workers, storage=storage, above=told, below=below, last=kind, server=server)


@pytest.mark.parametrize(
    "said",
    [
        text('on_miss = "next"', 'on_error = "fail"'),
        text('on_miss = "fail"', 'on_error = "next"', 'write = "through"'),
        text('on_miss = "fail"', "read_only = true"),
        text('on_miss = "fail"', storage="lushan"),
        text("optional = true"),
        text("optional = true", "deadline_ms = 5", 'write = "around"', storage="memcache"),
        text('write = "behind"', 'max_behind_bytes = "1MB"'),
        text('write = "through"', storage="memcache", workers=4) + OTHER,
    ],
)
def test_these_go_together(said: str) -> None:
    assert {finding.code for finding in findings(said)} <= {"HP408"}  # the other one writes past what this one keeps


@pytest.mark.parametrize(
    ("said", "key", "why"),
    [
        (text("optional = true", 'on_error = "fail"'), "on_error", "contradicts"),
        (text("optional = true", "deadline_ms = 200"), "deadline_ms", "never be early"),
        (text("deadline_ms = 10"), "deadline_ms", "add optional = true"),
        (text("read_only = true", 'write = "through"'), "write", "read_only"),
        (text('on_miss = "fail"'), "on_miss", "nothing would ever come into this level"),
        (text('on_miss = "fail"', 'write = "around"'), "on_miss", "nothing would ever come into this level"),
        (text('max_behind_bytes = "1MB"'), "max_behind_bytes", "only a level with write"),
        (text('write = "behind"', workers=2), "write", "workers = 1"),
        (text('write = "behind"', workers=0), "write", "workers = 1"),
        (text('write = "behind"', "optional = true"), "write", "a write is answered when this level has it"),
        (text('write = "behind"') + OTHER, "write", "instance 'other' uses"),
        (text(below='on_miss = "fail"', last=("redis", "10.0.0.2:6379")), "on_miss", "this is the last level"),
    ],
)
def test_these_do_not(said: str, key: str, why: str) -> None:
    (found,) = findings(said)
    assert found.code == "HP218" and why in found.message
    assert said.splitlines()[found.line - 1].startswith(key)


SPARE = '[[instance.level.pool]]\nname = "spare"\nservers = ["10.0.0.2:6379 b"]'
TWO = '["main", "spare"]'
PEER = 'servers = ["10.0.0.1:6379 a", "----", "10.1.0.1:6379 a"]'
SEVERAL = {
    **{kind: f"{{ {kind} = {TWO} }}" for kind in ("failover", "all", "majority", "any", "fastest")},
    "eject": '{ prefix = { "" = { eject = "main" }, "a" = "spare" } }',
    "class": f'{{ class = {{ read = "main", write = {{ failover = {TWO} }} }} }}',
    "migrate": '{ migrate = "spare", of = "main", begins = 2030-01-31T02:00:00Z, hours = 1 }',
}
ONE = {
    "prefix": '{ prefix = { "" = "main", "a" = "spare" } }',
    "class": f'{{ class = {{ read = {{ failover = {TWO} }}, write = "main" }} }}',
    "shadow": '{ shadow = "spare", of = "main" }',
}


def routed(route: str, *above: str) -> str:
    """A level with two pools above another."""
    return text(*above, f"route = {route}", SPARE)


@pytest.mark.parametrize("write", ["through", "behind"])
@pytest.mark.parametrize("kind", SEVERAL)
def test_values_go_through_levels_with_one_server_for_each_key(kind: str, write: str) -> None:
    said = routed(SEVERAL[kind], f'write = "{write}"')
    (found,) = findings(said)
    assert found.code == "HP218" and 'write = "invalidate" marks them all' in found.message
    assert said.splitlines()[found.line - 1].startswith("write")
    assert not findings(routed(SEVERAL[kind]))
    assert not findings(routed(SEVERAL[kind], "read_only = true"))


def test_values_do_not_go_through_two_rooms() -> None:
    said = text('write = "through"').replace('servers = ["10.0.0.1:6379"]', PEER)
    assert [found.code for found in findings(said)] == ["HP218"]
    assert not findings(said.replace("through", "invalidate"))


@pytest.mark.parametrize("kind", ONE)
def test_values_go_through_these_routes(kind: str) -> None:
    assert not findings(routed(ONE[kind], 'write = "through"'))


@pytest.mark.parametrize("route", [
    '{ warm_up = "spare", of = "main" }',
    '{ failover = ["main", { warm_up = "spare", of = "third" }] }',
])  # fmt: skip
def test_nothing_is_warmed_up_above_another_level(route: str) -> None:
    third = "" if "third" not in route else f'\n{SPARE.replace("spare", "third").replace("2:6379 b", "3:6379 c")}'
    said = routed(route).replace(SPARE, SPARE + third)
    (found,) = findings(said)
    assert found.code == "HP227" and "in a level above another write migrate" in found.message
    assert said.splitlines()[found.line - 1].startswith("route")


def test_a_key_has_a_place_above_another_level() -> None:
    more = '"10.0.0.2:6379 b", "10.0.0.3:6379 c"]\nDIST'
    said = routed(f"{{ failover = {TWO} }}").replace('"10.0.0.2:6379 b"]', more)
    (found,) = findings(said.replace("DIST", 'distribution = "random"'))
    assert found.code == "HP227" and "would reach one of the servers" in found.message
    assert not findings(said.replace("DIST", 'distribution = "modula"'))


def test_who_does_not_mark_the_spare_of_another_instance_writes_unseen() -> None:
    other = OTHER.replace("[[instance.level]]", '[[instance.level]]\nstorage = "redis"\nservers = ["10.0.0.1:6379"]\n'
                          "{more}\n\n[[instance.level]]")  # fmt: skip
    keeper = routed(f"{{ failover = {TWO} }}")
    assert [found.code for found in findings(keeper + other.replace("{more}", ""))] == ["HP408"]
    assert not findings(keeper + other.replace("{more}", f"route = {{ all = {TWO} }}\n{SPARE}"))


def test_writes_wait_right_above_the_last_level_only() -> None:
    between = '[[instance.level]]\nstorage = "memcache"\nservers = ["10.0.0.3:11211"]\n\n'
    last = '[[instance.level]]\nstorage = "sqlite"'
    said = text('write = "behind"').replace(last, between + last)
    (found,) = findings(said)
    assert found.code == "HP218" and "right above the last one" in found.message


@pytest.mark.parametrize("key", ['write = "through"', "read_only = true"])
def test_nothing_is_written_to_lushan_anyway(key: str) -> None:
    assert [found.code for found in findings(text(key, storage="lushan"))] == ["HP205"]


@pytest.mark.parametrize("key", ['on_miss = "fail"', "optional = true"])
def test_a_file_is_no_level_above_another(key: str) -> None:
    assert [found.code for found in findings(text(below=key))] == ["HP205"]
