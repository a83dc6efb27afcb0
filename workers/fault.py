"""Why a configuration can't serve in this worker, in one line that names its file and the key to look at."""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError
from hyper_proxy.config.model import Config


def in_words(error: Exception, config: Config) -> str:
    """The text of an error of the project or of the system; a storage's error names its servers in the file."""
    where = [config.path] if config.path else []
    names = [instance.name for instance in config.instances]
    if isinstance(error, BackendError) and error.instance in names:  # a plug-in that can't be loaded is no instance's
        where.append(f"instance[{names.index(error.instance)}].level[0].servers")
    return ": ".join([*where, str(error)])
