"""Why a configuration can't serve in this worker, in one line that names its file and the key to look at."""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError, SettingRefused
from hyper_proxy.config.model import Config


def unforeseen(error: BaseException) -> str:
    """The last line of a traceback, and where the others are."""
    return f"{type(error).__name__}: {error}; the traceback is on standard error (of a service: in the journal)"


def in_words(error: Exception, config: Config) -> str:
    """The text of an error of the project or of the system; a storage's error names its servers in the file."""
    return ": ".join([*filter(None, (config.path, key_of(error, config))), str(error)])


def key_of(error: Exception, config: Config) -> str:
    """The key to look at; "" when it is not known."""
    names = [instance.name for instance in config.instances]
    key = error.key if isinstance(error, SettingRefused) else "level[0].servers"
    if isinstance(error, BackendError | SettingRefused) and error.instance in names:
        return f"instance[{names.index(error.instance)}].{key}"
    return ""  # a plug-in that can't be loaded is no instance's
