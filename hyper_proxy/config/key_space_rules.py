"""What levels take that are one key space (HP213): that nobody changes behind its back what a level `local` has copies
of, and that their servers are asked one by one."""

from __future__ import annotations

from collections.abc import Iterator

from hyper_proxy.config.kinds import LOCAL
from hyper_proxy.config.model import Config, Instance

Fault = tuple[int, str, str]  # the level, the key, and what is said of it


def key_space_faults(config: Config, instance: Instance) -> Iterator[Fault]:
    """Of an instance that has levels."""
    last = len(instance.levels) - 1
    if instance.levels[last].route is not None and not instance.forwards:
        what = f"{instance.levels[last].storage} servers behind {instance.protocol} clients have"
        what = "the last of several levels has" if last else what
        yield last, "route", f"{what} no route, they are asked one by one; a level above another may have one"
    if instance.levels[0].storage == LOCAL:
        for text in _of_copies(config, instance):
            yield 0, "storage", text


def _of_copies(config: Config, instance: Instance) -> Iterator[str]:
    last = instance.levels[-1]
    if last.writers or any(era.writers for _, era in last.years):
        yield "a read may come from a server that has not received the last write yet, and would be kept: no `writers`"
    own = {server.address for server in last.servers if server.address}
    for other in config.instances:
        shared = own & {server.address for level in other.levels[-1:] for server in level.servers}
        if shared and other.levels[0].storage != LOCAL:
            text = f"instance '{other.name}' writes to {min(shared)}, too, and tells nobody: give it a local level"
            yield f"{text}, or take this one away"
