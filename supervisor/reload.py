"""The reload transaction: a child judges the file, every worker prepares, all commit; one "no" and nothing changes.

    judge ──► bind new listeners ──► prepare to all ──► all "prepared" ──► commit to all ──► all "committed" ──► verdict
                 any step says no, or does not answer in time ──► abort to all, close what was new ──► verdict

What the workers that run can't take over comes with new ones instead of "prepare" and "commit" (generations.py):

    judge ──► bind ──► a new crew boots and holds ──► all ready ──► it serves, the old one drains ──► verdict

One transaction runs at a time. Requests that come meanwhile share the next one. A worker born in between has the old
configuration; at the commit it is told to prepare and commit in one go, and is replaced if it can't.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hyper_proxy.common import log
from hyper_proxy.common.frames import Message
from hyper_proxy.config.model import Config
from supervisor import change, logs, verdict
from supervisor.candidate import plan_of, verdict_at_once
from supervisor.children import Children
from supervisor.current import Current
from supervisor.fleet import Fleet, Shed
from supervisor.generations import Generations
from supervisor.limits import LimitError
from supervisor.listeners import ListenError, drop, spread
from supervisor.loop import Loop, Timer
from supervisor.offers import send_prepare
from supervisor.placement import changed_placements
from supervisor.slots import Slot
from supervisor.validate import Judgement, Validation
from supervisor.verdict import Verdict

# A commit is one assignment in the worker; one that has not answered by then hangs and is replaced.
COMMIT_TIMEOUT_S = 3.0
STOPPING = "the fleet is stopping"
NO_FILE = "nothing is changed: the embedded default has no file"

Reply = Callable[[Verdict], None]


@dataclass(slots=True)
class _Transaction:
    """A configuration on its way: `plan` is what will be in force. `waiting` are the slots that still have to answer,
    `agreed` those that prepared."""

    number: int
    plan: Current
    judgement: Judgement
    waiting: set[Slot] = field(default_factory=set)
    agreed: set[Slot] = field(default_factory=set)
    committing: bool = False
    summary: str = ""
    timer: Timer | None = None


class Reloader:
    """Runs reloads; `last` is the newest verdict. Each of `on_begin` is called when one begins, each of `on_verdict`
    when it has ended; `on_shrink` with the number of slots that stay, just before the others are given up; `on_admin`
    when the sidecar has another address, and whoever asked for that has his answer."""

    def __init__(
        self,
        loop: Loop,
        children: Children,
        current: Current,
        fleet: Fleet,
        generations: Generations,
        shed: Shed,
    ) -> None:
        self._loop = loop
        self._children = children
        self._current = current
        self._fleet = fleet
        self._generations = generations
        self._shed = shed
        self._replies: list[Reply] = []
        self._next_replies: list[Reply] = []
        self._again = False
        self._busy = False
        self._held = ""
        self._transaction: _Transaction | None = None
        self._number = 0
        self._moved = False
        self.last = verdict.accepted(current.generation, "started")
        self.last_success_at = self.last.at
        fleet.routes.update(prepared=self._prepared, refused=self._refused, committed=self._committed)
        fleet.on_death.append(self._missing)
        self.on_begin: list[Callable[[], None]] = []
        self.on_admin: Callable[[], None] = lambda: None
        self.on_verdict: list[Callable[[Verdict], None]] = []
        self.on_shrink: Callable[[int], None] = lambda staying: None

    def request(self, reply: Reply | None = None) -> None:
        """Starts a reload, or lets the next one follow the running one; reply is called with its verdict."""
        replies = [] if reply is None else [reply]
        if self._busy:
            self._again = True
            self._next_replies += replies
            return
        self._busy = True
        self._replies = replies
        for begins in self.on_begin:
            begins()
        obstacle = STOPPING if self._fleet.stopping else self._held
        if obstacle:
            self._finish(verdict.refused(self._current.generation, obstacle))
            return
        path = self._current.config.path
        if not path:
            self._finish(verdict.accepted(self._current.generation, NO_FILE))
            return
        validation = Validation(self._loop, self._children, self._judged)
        try:
            validation.start(lambda: self._shed(frozenset()), path, self._current.config, self._current.digest)
        except OSError as error:
            self._finish(verdict.refused(self._current.generation, f"no process to read the file: {error}", file=path))

    @property
    def busy(self) -> bool:
        """Is a reload under way?"""
        return self._busy

    @property
    def held(self) -> str:
        """Why none may begin now, "" when one may."""
        return self._held

    def hold(self, reason: str) -> None:
        """Refuses all reloads for a reason from now on; none any more when it is ""."""
        self._held = reason

    def close_in_child(self, keep: frozenset[socket.socket]) -> None:
        """Closes in a fresh child the listeners of a transaction that is under way, except those to keep."""
        if self._transaction is not None:
            self._transaction.plan.close_in_child(keep)

    def _judged(self, judgement: Judgement) -> None:
        generation, path = self._current.generation, self._current.config.path
        if judgement.config is not None:
            for warning in verdict.warnings_of(judgement.findings):
                log.warning("config.warning", finding=warning)
        said = verdict_at_once(judgement, generation, path)
        if said is not None:
            self._finish(said)
        elif self._fleet.stopping:
            self._finish(verdict.refused(generation, STOPPING))
        elif judgement.config is not None:
            self._begin(judgement.config, judgement)

    def _begin(self, config: Config, judgement: Judgement) -> None:
        current = self._current
        try:
            plan = plan_of(current, config, judgement)
        except (ListenError, LimitError, logs.LogError) as error:
            line = judgement.lines.get(error.key, 1)
            text = f"{config.path}:{line}: error: {error}" if error.key else f"{error} in {config.path}"
            self._finish(verdict.refused(current.generation, text, file=config.path, line=line, key=error.key))
            return
        self._number += 1
        self._transaction = _Transaction(self._number, plan, judgement)
        if judgement.renewing:
            keys = ", ".join(judgement.renewing)
            log.info("reload.renewing", generation=plan.generation, workers=plan.slots, because=keys)
            self._generations.prepare(plan, self._renewed)
        else:
            self._prepare(self._transaction)

    def _renewed(self, error: str) -> None:
        transaction = self._transaction
        if transaction is None:
            return
        if error:
            self._abort(error)
            return
        self._replace(transaction)
        self._generations.take_over(self._current.config.drain_timeout_s)
        self._conclude(transaction)

    def _prepare(self, transaction: _Transaction) -> None:
        current = self._current
        for slot in self._fleet.members():
            transaction.waiting.add(slot)
            send_prepare(self._fleet, slot, transaction.number, self._current.config, transaction.plan)
        log.info("reload.preparing", generation=transaction.plan.generation, workers=len(transaction.waiting))
        transaction.timer = self._loop.later(current.config.prepare_timeout_s, self._expired)
        self._advance()

    def _prepared(self, slot: Slot, message: Message) -> None:
        transaction = self._transaction
        if transaction is not None and message["id"] == transaction.number and not transaction.committing:
            transaction.waiting.discard(slot)
            transaction.agreed.add(slot)
            self._advance()

    def _refused(self, slot: Slot, message: Message) -> None:
        transaction = self._transaction
        if transaction is None or message["id"] != transaction.number:
            return
        key = message["key"]
        line = transaction.judgement.lines.get(key, 0) if key else 0
        if transaction.committing:
            self._fleet.kill(slot, f"it can't take the new configuration: {message['error']}")
        elif line:
            self._abort(f"{transaction.plan.config.path}:{line}: error: {key}: {message['why']}", line, key)
        else:
            self._abort(f"worker {slot.index} can't take it: {message['error']}")

    def _committed(self, slot: Slot, message: Message) -> None:
        slot.generation = message["generation"]
        transaction = self._transaction
        if transaction is not None and message["id"] == transaction.number and transaction.committing:
            transaction.waiting.discard(slot)
            self._advance()

    def _missing(self, slot: Slot, _snapshot: dict[str, Any]) -> None:
        transaction = self._transaction
        if transaction is None or slot not in transaction.waiting | transaction.agreed:
            return
        transaction.waiting.discard(slot)
        transaction.agreed.discard(slot)
        if transaction.committing or transaction.waiting or transaction.agreed:
            self._advance()
        else:  # It may be the configuration that kills them.
            self._abort(f"no worker outlived its preparation; worker {slot.index}: {slot.last_exit}")

    def _advance(self) -> None:
        transaction = self._transaction
        if transaction is None or transaction.waiting:
            return
        if transaction.committing:
            self._conclude(transaction)
        else:
            self._commit(transaction)

    def _commit(self, transaction: _Transaction) -> None:
        _cancel(transaction.timer)
        stragglers = [slot for slot in self._fleet.members() if slot not in transaction.agreed]
        for slot in stragglers:
            send_prepare(self._fleet, slot, transaction.number, self._current.config, transaction.plan)
        transaction.committing = True
        for slot in self._fleet.members():
            transaction.waiting.add(slot)
            self._fleet.send(slot, {"type": "commit", "id": transaction.number})
        self._replace(transaction)
        transaction.timer = self._loop.later(COMMIT_TIMEOUT_S, self._expired)
        self._advance()

    def _replace(self, transaction: _Transaction) -> None:
        """From here on every newborn worker has the new configuration."""
        current, judgement, plan = self._current, transaction.judgement, transaction.plan
        transaction.summary = change.summary(current.config, plan.config)
        for name, meaning in changed_placements(current.config, plan.config).items():
            log.warning("config.placement_changed", instance=name, meaning=meaning)
        before, admin = current.listeners, current.admin
        spread(before, plan.listeners)
        self.on_shrink(plan.slots)
        drop(before, plan.listeners)
        logs.apply(plan.config.log)
        current.begin(plan.config, judgement.digest, judgement.lines, plan.listeners)
        current.slots, current.admin = plan.slots, plan.admin
        if admin is not plan.admin:
            admin.close()
            self._moved = True

    def _conclude(self, transaction: _Transaction) -> None:
        _cancel(transaction.timer)
        self._transaction = None
        warnings = verdict.warnings_of(transaction.judgement.findings)
        self._finish(verdict.accepted(self._current.generation, transaction.summary, warnings))

    def _expired(self) -> None:
        transaction = self._transaction
        if transaction is None:
            return
        silent = sorted(transaction.waiting, key=lambda slot: slot.index)
        if transaction.committing:
            for slot in silent:
                self._fleet.kill(slot, f"it did not commit within {COMMIT_TIMEOUT_S:g} s")
        else:
            names = ", ".join(f"worker {slot.index} (pid {slot.pid})" for slot in silent)
            self._abort(f"{names} did not answer within {self._current.config.prepare_timeout_s:g} s")

    def _abort(self, error: str, line: int = 0, key: str = "") -> None:
        transaction = self._transaction
        if transaction is None:
            return
        _cancel(transaction.timer)
        self._transaction = None
        for slot in self._fleet.members():
            self._fleet.send(slot, {"type": "abort", "id": transaction.number})
        drop(transaction.plan.listeners, self._current.listeners)
        if transaction.plan.admin is not self._current.admin:
            transaction.plan.admin.close()
        path = transaction.plan.config.path
        self._finish(verdict.refused(self._current.generation, error, file=path, line=line, key=key))

    def _finish(self, result: Verdict) -> None:
        self.last = result
        if result.ok:
            self.last_success_at = result.at
        result.write_log()
        for ends in self.on_verdict:
            ends(result)
        replies, self._replies = self._replies, []
        self._busy = False
        for reply in replies:
            reply(result)
        if self._moved:
            self._moved = False
            self.on_admin()
        if self._again:
            self._again = False
            following, self._next_replies = self._next_replies, []
            self.request(lambda outcome: _tell(following, outcome))


def _tell(replies: Iterable[Reply], outcome: Verdict) -> None:
    for reply in replies:
        reply(outcome)


def _cancel(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()
