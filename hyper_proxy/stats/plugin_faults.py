"""Faults of plug-ins in the log: all are counted, but a plug-in that fails at each request must not fill the disk."""

from __future__ import annotations

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.plugin_error import PluginError
from hyper_proxy.stats.slowlog import Allowance


class Reports:
    """Of one worker. show_keys: are keys readable, or is there only their digest?"""

    def __init__(self) -> None:
        self.allowance = Allowance(10)  # lines in a second
        self.show_keys = False


REPORTS = Reports()


def report(error: HyperProxyError, instance: str) -> None:
    """Log it if it is a fault of a plug-in, and there are not too many."""
    if isinstance(error, PluginError) and REPORTS.allowance.take():
        error.report(instance, REPORTS.show_keys)
