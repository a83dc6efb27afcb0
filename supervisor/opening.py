"""What a master takes hold of before its first fork: pid file and addresses; new ones, or those of its predecessor."""

from __future__ import annotations

import os
import time

from hyper_proxy.common import log
from hyper_proxy.config.load import lines_in
from hyper_proxy.config.model import Config
from supervisor.current import Current
from supervisor.estate import Estate
from supervisor.given import refuse_unwanted, take_given
from supervisor.listeners import Listener, ListenError, bind_admin, fit, wanted
from supervisor.pidfile import PidFile, claim, inherit


def take_hold(config: Config, digest: str, estate: Estate | None) -> Current:
    """Takes what no other fleet may have. Raises PidFileError and ListenError; nothing new is kept then."""
    pidfile = _pidfile(config.pidfile, estate)
    try:
        current = open_listeners(config, digest, estate, pidfile)
    except ListenError:
        if estate is None or estate.pidfile[0] != pidfile.path:
            pidfile.remove()
        raise
    if estate is not None:
        current.generation, current.shared = estate.generation + 1, True
        current.overrides = estate.overrides
        log.overrule(current.overrides.log_level)
    return current


def open_listeners(config: Config, digest: str, estate: Estate | None, pidfile: PidFile) -> Current:
    """Binds what a configuration asks for and was not left by a predecessor. Raises ListenError; nothing new stays open
    then."""
    kept: dict[str, Listener] = estate.listeners if estate is not None else take_given(os.environ)
    inherits_admin = estate is not None and estate.admin.listen == config.admin
    admin = estate.admin if estate is not None and inherits_admin else bind_admin(config.admin)
    try:
        if estate is None:
            refuse_unwanted(kept, set(wanted(config)))
        listeners = fit(kept, wanted(config), config.worker_count)
    except ListenError:
        if not inherits_admin:
            admin.close()
        raise
    lines = lines_in(config.path)
    return Current(config, digest, config.worker_count, listeners, admin, time.time(), pidfile, lines=lines)


def _pidfile(path: str, estate: Estate | None) -> PidFile:
    if estate is not None and path and estate.pidfile[0] == path:
        return inherit(*estate.pidfile)
    return claim(path)
