"""A master's first steps: its log, and what no other may have; only then is there a fleet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from hyper_proxy.common import log
from hyper_proxy.common.errors import Finding, HyperProxyError
from hyper_proxy.config.load import lines_in
from hyper_proxy.config.model import Config
from supervisor import logs
from supervisor.estate import Estate
from supervisor.limits import LimitError, raise_file_limit
from supervisor.listeners import ADMIN_LISTEN, ListenError
from supervisor.master import EXIT_OS, Crew, Master, give_up
from supervisor.opening import take_hold
from supervisor.pidfile import PidFileError
from supervisor.privileges import PrivilegeError, drop_privileges

EXIT_PERMISSION = 77  # sysexits.h: EX_NOPERM

WhoAnswers = Callable[[Config], str]
"""Says which fleet answers where the sidecar of this configuration would, and what to do; "" when none does."""


def run(
    config: Config,
    digest: str,
    crew: Crew,
    who_answers: WhoAnswers,
    findings: Sequence[Finding] = (),
    estate: Estate | None = None,
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
        text = _in_words(error, config, who_answers)
        give_up(text)
        if estate is not None:
            estate.decline(text)
        return EXIT_PERMISSION if isinstance(error, PrivilegeError) else EXIT_OS
    return Master(current, crew, estate).run()


def _in_words(error: HyperProxyError, config: Config, who_answers: WhoAnswers) -> str:
    """What can't be had, what to change, and if that is the sidecar's address, who has it."""
    lines = lines_in(config.path)
    key = getattr(error, "key", "")
    text = f"{error} in {config.path}" if config.path else f"{error} in a configuration of your own: -c FILE"
    if key and key in lines:
        text = f"{config.path}:{lines[key]}: error: {error}"
    if not isinstance(error, ListenError) or error.key != ADMIN_LISTEN:
        return text
    said = who_answers(config)
    parts = [error.fact if said else text]
    if config.path and error.key not in lines:
        parts.append(f"It is the default of [admin] listen, which {config.path} does not set")
    return ". ".join([*parts, said] if said else parts)
