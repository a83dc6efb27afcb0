"""The log of a process that writes its lines at once: the master and the sidecar."""

from __future__ import annotations

from hyper_proxy.common import log
from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.model import Log


class LogError(HyperProxyError):
    """The log file can't be opened; `key` is the setting that names it."""

    kind = "log"
    key = "log.file"

    def __init__(self, settings: Log, error: OSError) -> None:
        super().__init__(f"cannot open the log {settings.file}: {error.strerror}; change {self.key}")


def check(settings: Log) -> None:
    """Raises LogError when the file can't be opened for appending."""
    try:
        log.LogFile(settings.file).close()
    except OSError as error:
        raise LogError(settings, error) from error


def apply(settings: Log) -> None:
    """Logs as the settings say from now on. A file that can't be opened any more leaves the log where it was, and
    says so."""
    old = log.sink().file
    if settings.file == old.path:
        log.set_level(settings.level)
        log.set_form(settings.format)
        return
    try:
        log.configure(settings.level, log.DirectSink(log.LogFile(settings.file)), settings.format)
    except OSError as error:
        log.error("log.not_opened", file=settings.file, error=error)
    else:
        old.close()


def reopen() -> str:
    """Opens the log file anew, after it was renamed. What the system refuses is logged, to the old file, and is the
    result; "" when it is done."""
    try:
        log.reopen()
    except OSError as error:
        log.error("log.not_reopened", error=error)
        return error.strerror or str(error)
    return ""


def apply_first(settings: Log) -> None:
    """The same at the start, when a file that can't be opened is a reason not to start. Raises LogError."""
    check(settings)
    apply(settings)
