"""The limit on open files: raised as far as the system allows, and refused when not even the fleet itself fits in.

How many clients fit in beyond that is a finding of `check` (HP304), and what happens when more come is the workers'
affair: they refuse them.
"""

from __future__ import annotations

import resource

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Config

# Log, pid file, pipes, selector, signals, and what Python has open while it imports.
OWN_FILES = 32
# The master has a pipe to each worker, and during a reload with new workers to those that leave as well.
PIPES_OF_A_SLOT = 3


class LimitError(HyperProxyError):
    """The fleet can't run within the limit; the text says how many files it needs."""

    kind = "limit"
    key = ""  # no single setting asks for too much


def needed_files(config: Config, slots: int) -> tuple[int, str]:
    """The files that the process with the most of them has open before any client comes, and what for."""
    addresses = sum(len(instance.listen) for instance in config.instances)
    servers = sum(level.usual_connections for instance in config.instances for level in instance.levels)
    master = OWN_FILES + slots * (addresses + PIPES_OF_A_SLOT) + 1
    worker = OWN_FILES + addresses + servers + len(config.instances)
    return max(
        (master, f"the master: {slots} workers at {addresses} addresses"),
        (worker, f"a worker: {servers} connections to servers, {addresses} addresses"),
    )


def raise_file_limit(config: Config) -> None:
    """Clients and servers each take a descriptor: use as many as the system lets this user have, as `check` assumes.
    Raises LimitError."""
    check_file_limit(config, config.worker_count)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def check_file_limit(config: Config, slots: int) -> None:
    """Before anything is opened for so many workers: a master with no descriptor left could start none that replaces
    another. Raises LimitError."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed, what_for = needed_files(config, slots)
    if hard != resource.RLIM_INFINITY and hard < needed:
        text = f"at most {hard} open files are allowed, {needed} are needed by {what_for}"
        raise LimitError(f"{text}; raise the hard limit (LimitNOFILE=, ulimit -Hn), or have fewer of them")
