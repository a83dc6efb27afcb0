"""What a level `local` takes (HP213): that nobody changes behind its back what it has copies of."""

from __future__ import annotations

from collections.abc import Iterator

from hyper_proxy.config.model import Config, Instance
from hyper_proxy.config.settings import LOCAL


def local_faults(config: Config, instance: Instance) -> Iterator[str]:
    """What is said of the first level of this instance, which is local."""
    last = instance.levels[-1]
    if last.writers:
        yield "a read may come from a server that has not received the last write yet, and would be kept: no `writers`"
    own = {server.address for server in last.servers if server.address}
    for other in config.instances:
        levels = other.levels
        shared = own & {server.address for level in levels[-1:] for server in level.servers}
        if shared and levels[0].storage != LOCAL:
            text = f"instance '{other.name}' writes to {min(shared)}, too, and tells nobody: give it a local level"
            yield f"{text}, or take this one away"
