"""Why a configuration can't serve in this worker, in one line that names its file and the key to look at."""

from __future__ import annotations

from hyper_proxy.common.errors import WHERE_TRACEBACKS_ARE, BackendError, SettingRefused
from hyper_proxy.config.load import lines_in
from hyper_proxy.config.model import Config, Instance


def unforeseen(error: BaseException) -> str:
    """The last line of a traceback, and where the others are."""
    return f"{type(error).__name__}: {error}; the traceback is {WHERE_TRACEBACKS_ARE}"


def in_words(error: Exception, config: Config) -> str:
    """The text of an error of the project or of the system; a storage's error names its servers in the file."""
    key = key_of(error, config)
    line = lines_in(config.path).get(key) if key else None
    where = f"{config.path}:{line}: error" if line else config.path
    return ": ".join([*filter(None, (where, key)), str(error)])


def key_of(error: Exception, config: Config) -> str:
    """The key to look at; "" when it is not known."""
    if not isinstance(error, BackendError | SettingRefused):
        return ""  # a plug-in that can't be loaded is no instance's
    for index, instance in enumerate(config.instances):
        if instance.name == error.instance:
            key = error.key if isinstance(error, SettingRefused) else _servers_with(error.node, instance)
            return f"instance[{index}].{key}"
    return ""


def _servers_with(node: str, instance: Instance) -> str:
    """The servers among which is the one that an error names."""
    for number, level in enumerate(instance.levels):
        if any(node in (server.address, server.label, server.where) for server in level.everyone):
            return f"level[{number}].servers"
    return "level[0].servers"
