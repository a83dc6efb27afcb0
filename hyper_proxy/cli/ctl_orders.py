"""The verbs of `hyper-proxy ctl`: each is one request to the sidecar, and one row here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from hyper_proxy.cli import ctl_show as show
from hyper_proxy.cli.admin import Answer
from hyper_proxy.config.notes import suggest


@dataclass(frozen=True, slots=True)
class Order:
    """A verb: the request it is, what of the answer it prints, and its line of help.

    `arguments` are the words after the verb, fields of the request in lower case; those in brackets may be left out.
    `fixed` are further fields. `counts` is the number in the answer that must not be 0, if it was to have any effect.
    """

    method: str
    path: str
    show: Callable[[Answer], str]
    help: str
    arguments: tuple[str, ...] = ()
    fixed: dict[str, str] = field(default_factory=dict)
    counts: str = ""


ORDERS: dict[str, Order] = {
    "health": Order("GET", "/health/ready", show.readiness, "may clients be sent here? 0 yes, 1 no and why"),
    "wait-ready": Order("GET", "/health/ready", show.readiness, "the same, when it is true; at most --timeout seconds"),
    "show stats": Order("GET", "/stats", show.pretty, "counters and state, as JSON", ("[INSTANCE]", "[NODE]")),
    "show workers": Order("GET", "/stats", show.workers, "one line for each worker"),
    "show instances": Order("GET", "/stats", show.instances, "one line for each instance", ("[INSTANCE]",)),
    "show nodes": Order("GET", "/stats", show.nodes, "one line for each server", ("[INSTANCE]",)),
    "show levels": Order("GET", "/stats", show.levels, "one line for each level above another", ("[INSTANCE]",)),
    "show memory": Order("GET", "/stats", show.memory, "what each worker holds"),
    "show version": Order("GET", "/stats", show.version, "of the fleet and of this command"),
    "show clients": Order("GET", "/clients", show.clients, "who is connected, the longest first", ("[INSTANCE]",)),
    "show listeners": Order("GET", "/listeners", show.listeners, "addresses, and who waits to be accepted"),
    "show config": Order("GET", "/config", show.pretty, "the configuration in force, as JSON, passwords masked"),
    "show settings": Order("GET", "/config", show.settings, "the same key by key: value, line, what a change takes"),
    "show overrides": Order("GET", "/overrides", show.overrides, "what operators have ordered, and who"),
    "show events": Order("GET", "/events", show.events, "the last reloads, deaths and orders; servers and rooms"),
    "show slowlog": Order("GET", "/slowlog", show.slowlog, "slow requests, newest first"),
    "show hotkeys": Order("GET", "/hotkeys", show.keys, "the keys asked for most, sampled"),
    "show bigkeys": Order("GET", "/bigkeys", show.keys, "the keys of the largest values, sampled"),
    "show stack": Order("GET", "/stack", show.stacks, "what greenlets do just now; --worker N"),
    "reload": Order("POST", "/reload", show.verdict, "reload; waits for the verdict, 0 when the new one serves"),
    "drain": Order("POST", "/drain", show.summary, "out of rotation: health says 503, clients are served"),
    "undrain": Order("POST", "/undrain", show.summary, "take it back"),
    "node drain": Order(
        "POST", "/node", show.summary, "its keys fail at once, what is under way finishes", ("INSTANCE", "NODE"),
        {"state": "drain"},
    ),
    "node maintenance": Order(
        "POST", "/node", show.summary, "the same, and what is under way is cut", ("INSTANCE", "NODE"),
        {"state": "maintenance"},
    ),
    "node ready": Order(
        "POST", "/node", show.summary, "back into service", ("INSTANCE", "NODE"), {"state": "ready"},
    ),
    "room pin": Order(
        "POST", "/room", show.summary, "which room serves: first, second, or auto: the proxy decides",
        ("INSTANCE", "ROOM"),
    ),
    "log-level": Order(
        "POST", "/log-level", show.summary, "instead of the configured one; without LEVEL: no more", ("[LEVEL]",)
    ),
    "overrides clear": Order(
        "POST", "/overrides/clear", show.summary, "take back all of drain, node, room and log-level"
    ),
    "disconnect": Order(
        "POST", "/disconnect", show.summary, "end a client's connection: HOST:PORT, or HOST for many",
        ("ADDRESS",), counts="closed",
    ),
    "reopen-logs": Order("POST", "/reopen-logs", show.summary, "open the log files anew: what USR1 does"),
    "workers": Order("POST", "/workers", show.summary, "+1 or -1, until the next reload", ("CHANGE",)),
    "restart-worker": Order(
        "POST", "/restart-worker", show.summary, "another one in its place; its clients may finish", ("WORKER",)
    ),
    "upgrade": Order("POST", "/upgrade", show.summary, "start the program anew, hand over; waits, at most --timeout"),
    "stop": Order("POST", "/stop", show.summary, "stop accepting, let requests finish, end: what TERM does"),
    "stop fast": Order("POST", "/stop", show.summary, "end within two seconds: what INT does", (), {"fast": "yes"}),
}  # fmt: skip


OPTIONS = {
    "worker": ("/stats", "/clients", "/stack", "/disconnect"),
    "limit": ("/clients", "/slowlog", "/hotkeys", "/bigkeys"),
}
"""Fields that are options of the command, and the requests that have them."""


def check_options(name: str, given: Iterable[str]) -> None:
    """Raises Misused when the verb has no such option."""
    for option in given:
        if ORDERS[name].path not in OPTIONS[option]:
            raise Misused(f"'{name}' takes no --{option}")


def usage(name: str) -> str:
    """The verb and its arguments."""
    return " ".join([name, *ORDERS[name].arguments])


class Misused(Exception):
    """Words that are no verb, or not enough of them; the text is for the user."""


def read_words(words: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The verb that these words are, and its fields. Raises Misused."""
    if not words:
        raise Misused("which verb? hyper-proxy ctl --help lists them all")
    for count in (2, 1):
        name = " ".join(words[:count])
        if len(words) >= count and name in ORDERS:
            return name, _fields(name, words[count:])
    said = " ".join(words[:2])
    starts = [name for name in ORDERS if name.split()[0] == words[0]]
    if starts:
        near = suggest(words[1], [name.partition(" ")[2] for name in starts]) if len(words) > 1 else ""
        if near and words[1] not in ORDERS:  # "node undrain" is no misspelt "node drain", it wants the contrary
            raise Misused(f"'{words[0]}' does not go on with '{words[1]}'{near}")
        raise Misused("\n  ".join([f"'{words[0]}' goes on:", *map(usage, starts)]))
    if words[0].endswith(".toml"):
        raise Misused(f"the file is named by -c: hyper-proxy ctl -c {' '.join(words)}")
    near = suggest(said, ORDERS) or suggest(words[0], ORDERS, {"status": "health"})
    raise Misused(f"there is no verb '{said}'{near}\nhyper-proxy ctl --help lists them all")


def _fields(name: str, words: Sequence[str]) -> dict[str, str]:
    wanted = ORDERS[name].arguments
    needed = [argument for argument in wanted if not argument.startswith("[")]
    if not len(needed) <= len(words) <= len(wanted):
        raise Misused(f"usage: hyper-proxy ctl {usage(name)}")
    given = {argument.strip("[]").lower(): word for argument, word in zip(wanted, words, strict=False)}
    return given | ORDERS[name].fixed
