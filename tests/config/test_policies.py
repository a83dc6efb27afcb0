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
