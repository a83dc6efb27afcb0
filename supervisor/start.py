"""A master's first steps: its log, and what no other may have; only then is there a fleet."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hyper_proxy.common import log
from hyper_proxy.common.errors import Finding
from hyper_proxy.config.model import Config
from supervisor import logs
from supervisor.estate import Estate
from supervisor.limits import LimitError, raise_file_limit
from supervisor.listeners import ListenError
from supervisor.master import EXIT_OS, Crew, Master, give_up
from supervisor.opening import take_hold
from supervisor.pidfile import PidFileError
from supervisor.privileges import PrivilegeError, drop_privileges

EXIT_PERMISSION = 77  # sysexits.h: EX_NOPERM


def run(
    config: Config, digest: str, crew: Crew, findings: Sequence[Finding] = (), estate: Estate | None = None
) -> int:
    """Serves until told to stop; returns the exit code of the process. `findings` are the warnings of the file,
    `estate` is what a running master has left to this one."""
    try:
        logs.apply_first(config.log)
        for finding in findings:
            log.warning("config.warning", finding=finding)
            if config.log.file:  # who starts it by hand reads it here
                sys.stderr.write(f"{finding}\n")
        raise_file_limit(config)
        current = take_hold(config, digest, estate)
        drop_privileges(current)
    except (ListenError, PidFileError, LimitError, PrivilegeError, logs.LogError) as error:
        hint = f" in {config.path}" if config.path else " in a configuration of your own: -c FILE"
        give_up(f"{error}{hint}")
        if estate is not None:
            estate.decline(f"{error}{hint}")
        return EXIT_PERMISSION if isinstance(error, PrivilegeError) else EXIT_OS
    return Master(current, crew, estate).run()
