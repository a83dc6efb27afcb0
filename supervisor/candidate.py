"""What a judged file comes to: the reason why it can't be in force, or what will be, its listeners bound."""

from __future__ import annotations

from dataclasses import replace

from hyper_proxy.config.model import Config
from supervisor import logs, verdict
from supervisor.current import Current
from supervisor.limits import check_file_limit
from supervisor.listeners import ListenError, bind_admin, fit, wanted
from supervisor.validate import Judgement
from supervisor.verdict import Verdict


def verdict_at_once(judgement: Judgement, generation: int, path: str) -> Verdict | None:
    """That of a file with which nothing is to be done; None when it is to be put in force."""
    if judgement.crash:
        return verdict.refused(generation, judgement.crash, file=path)
    if judgement.unchanged:
        return verdict.accepted(generation, "the file is unchanged")
    if judgement.config is None:
        return verdict.found(generation, judgement.findings)
    if judgement.cold:
        text = "\n".join(f"{path}:{cold.line}: error: {cold.key}: {cold.message}" for cold in judgement.cold)
        first = judgement.cold[0]
        return verdict.refused(generation, text, file=path, line=first.line, key=first.key)
    return None


def plan_of(current: Current, config: Config, judgement: Judgement) -> Current:
    """What will be in force, its listeners bound. Raises ListenError, LimitError and LogError; nothing new is open
    then."""
    logs.check(config.log)
    slots = config.worker_count if judgement.renewing else current.slots
    check_file_limit(config, slots)
    admin = current.admin if config.admin == current.config.admin else bind_admin(config.admin)
    try:
        listeners = fit(current.listeners, wanted(config), slots)
    except ListenError:
        if admin is not current.admin:
            admin.close()
        raise
    return replace(
        current, config=config, slots=slots, listeners=listeners, admin=admin, generation=current.generation + 1
    )
