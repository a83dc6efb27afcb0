"""What the levels of an instance may be told about misses, errors and writes (HP218): what contradicts itself, has no
effect, or could not be kept, with what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hyper_proxy.config.copies import keeps_several
from hyper_proxy.config.kinds import CACHES
from hyper_proxy.config.model import Config, Instance, Level
from hyper_proxy.config.notes import Path

POLICIES = ("on_miss", "on_error", "write", "read_only", "optional", "deadline_ms", "max_behind_bytes")
UPDATING = ("through", "behind")
"""The ways of writing that put the new value into the level."""

USUAL = Level("", ())
"""A level of which nothing is said: who writes a default says nothing."""

Fault = tuple[str, str]  # the key, and what is said of it


def policy_faults(config: Config, written: Callable[[Path], bool]) -> Iterator[tuple[Path, str]]:
    """Where, and what is said. written: does the file itself say this key?"""
    for i, instance in enumerate(config.instances):
        for j, level in enumerate(instance.levels):
            path: Path = ("instance", i, "level", j)
            said = {key for key in POLICIES if written((*path, key)) and getattr(level, key) != getattr(USUAL, key)}
            if j == len(instance.levels) - 1:
                faults: Iterator[Fault] = _of_last(level, said)
            else:
                faults = _of_level(level, said)
            for key, text in faults:
                yield (*path, key), text
            if level.write == "behind" and j < len(instance.levels) - 1:
                for text in _of_behind(config, instance, j):
                    yield (*path, "write"), text


def _of_last(level: Level, said: set[str]) -> Iterator[Fault]:
    """The last level has no policies. The reader has refused them for storages that can't be above another."""
    for key in POLICIES if level.storage in CACHES else ():
        if key in said:
            yield key, f"this is the last level: {key} is said of a level above another"


def _of_level(level: Level, said: set[str]) -> Iterator[Fault]:
    read_only = level.read_only or level.storage == "lushan"
    if level.optional and level.on_error == "fail":
        yield "on_error", 'an optional level is passed by when it does not answer: on_error = "fail" contradicts that'
    if level.optional and level.deadline_ms >= level.timeout.read_ms:
        text = f"deadline_ms ({level.deadline_ms}) is not less than timeout.read_ms ({level.timeout.read_ms})"
        yield "deadline_ms" if "deadline_ms" in said else "optional", f"{text}, so it would never be early"
    if "deadline_ms" in said and not level.optional:
        yield "deadline_ms", "only an optional level has this deadline: add optional = true, or use timeout.read_ms"
    if level.read_only and "write" in said:
        yield "write", "the level is read_only: a write does nothing to it, whatever is said here"
    if level.write in UPDATING and not read_only and keeps_several(level):
        text = "a key may have copies at several servers of this level, which see writers in different orders"
        text = f'write = "{level.write}" takes one server for each key: {text}'
        yield "write", f'{text}; write = "invalidate" marks them all'
    if level.on_miss == "fail" and not read_only and level.write not in UPDATING:
        text = f'on_miss = "fail" with write = "{level.write}": nothing would ever come into this level'
        yield "on_miss", f'{text}; it takes write = "through" or "behind", or read_only = true'
    if "max_behind_bytes" in said and level.write != "behind":
        yield "max_behind_bytes", 'only a level with write = "behind" has writes that wait'


def _of_behind(config: Config, instance: Instance, at: int) -> Iterator[str]:
    """Writes wait in one worker: no one else may write, and nothing may lie between them and what knows."""
    level, last = instance.levels[at], instance.levels[-1]
    if at != len(instance.levels) - 2:
        yield 'write = "behind" is for the level right above the last one: what waits is written there'
    if level.optional:
        yield "an optional level may be passed by, but a write is answered when this level has it"
    if config.workers != 1:
        text = "the order of writes that wait can be kept in one worker only"
        yield f'write = "behind" takes [proxy] workers = 1: {text}'
    own = {server.address for server in last.servers if server.address}
    for other in config.instances:
        shared = own & {server.address for level in other.levels[-1:] for server in level.servers}
        if other is not instance and shared:
            text = f"instance '{other.name}' uses {sorted(shared)[0]}, too, and would read and write past what waits"
            yield f'write = "behind" takes levels of its own: {text}'
