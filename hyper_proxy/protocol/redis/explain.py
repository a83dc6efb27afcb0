"""What the redis front makes of a request of a client that has just connected: one function a treatment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hyper_proxy.common.errors import ClientError, PolicyDenied
from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.redis import command, commands, scan, translate, wording
from hyper_proxy.protocol.redis.command import Command
from hyper_proxy.protocol.redis.framing import Framer, join_words
from hyper_proxy.stats.classes import CLASSES
from hyper_proxy.storage.keyvalue import LEVELED
from hyper_proxy.tenant import policy

PAIRS = frozenset({b"mset"})  # split commands whose keys have a value each

NAMES: dict[int, str] = {
    command.SINGLE: "single",
    command.SAME_SHARD: "same_shard",
    command.SPLIT: "split",
    command.ANY: "any",
    command.ALL: "all",
    command.SCAN: "scan",
    command.LOCAL: "local",
    command.SESSION: "session",
    command.BLOCK: "block",
    command.SUBSCRIBE: "subscribe",
    command.REFUSED: "refused",
}
# Treatments that do not look at the storage.
AT_HOME = frozenset({command.LOCAL, command.SESSION, command.REFUSED})
NEEDS_REDIS = frozenset({b"multi", b"watch"})


@dataclass(frozen=True, slots=True)
class Case:
    """One request and all that decides about it; `keys` are the words that are keys."""

    ground: Ground
    row: Command
    argv: list[bytes]
    keys: list[bytes]

    @property
    def shards(self) -> list[int | None]:
        """The shards of the keys, each once."""
        return list(self.ground.split(self.keys))


def explain(instance: Instance, argv: list[bytes]) -> Explanation:
    """Raises BadQuestion for a request that no instance would serve."""
    try:
        row = commands.resolve(argv)
    except wording.ErrorReply as fault:
        # A server adds the first words of the request, which whoever asks has just typed.
        raise BadQuestion(str(fault).removeprefix("ERR ").partition(", with args")[0]) from fault
    if row.name in PAIRS and not len(argv) % 2:
        raise BadQuestion(wording.wrong_arity(row).decode().removeprefix("ERR "))
    ground = Ground(instance, row.klass == command.READ and not _is_alone(row, argv))
    case = Case(ground, row, argv, [argv[position] for position in commands.keys_of(row, argv)])
    allow = wording.permission(row) if row.dangerous else ""
    allowed = not allow or allow in instance.allow
    facts = Facts(row.name.decode(), CLASSES[row.klass], NAMES[row.treatment], row.reduce, allow, allowed)
    db = ground.level.db if ground.placement else None
    keys = tuple(Key(key, ground.places(key, sent=key, db=db)) for key in case.keys)
    return Explanation(instance, tuple(argv), facts, keys, outcome(case))


def _is_alone(row: Command, argv: list[bytes]) -> bool:
    """Does it take a connection of its client's own? Those lead to where writes go."""
    blocks = row.treatment == command.BLOCK and (row.blocks is None or row.blocks(argv))
    return blocks or row.treatment == command.SESSION


def outcome(case: Case) -> Outcome:
    """In the order in which treat.py decides."""
    instance, row = case.ground.instance, case.row
    limits = instance.limits
    try:
        Framer(limits.max_arguments, limits.max_value_bytes, limits.max_line_bytes).scan(join_words(case.argv), 0)
        if row.dangerous:
            policy.check_allowed(instance, wording.permission(row))
        if case.ground.is_translated and (row.treatment not in AT_HOME or row.name in NEEDS_REDIS):
            return translated(case)
        return TREATMENTS[row.treatment](case)
    except wording.ErrorReply as fault:
        return Outcome("nothing is sent", error=str(fault))
    except (ClientError, PolicyDenied) as fault:
        return Outcome("nothing is sent", error=f"ERR {fault}")


def translated(case: Case) -> Outcome:
    """The storage is no redis."""
    storage, table = case.ground.level.storage, case.ground.level.table
    if case.row.name not in translate.verbs_of(table.fields if table else ()):
        place = LEVELED if case.ground.number > 1 else ""
        return Outcome("nothing is sent", error=wording.unserved(case.row.name, storage, place))
    return Outcome(case.ground.own_way)


def same_shard(case: Case) -> Outcome:
    """Forwarded as it came."""
    shards = case.shards
    ground = case.ground
    if len(shards) > 1:
        raise wording.ErrorReply(wording.CROSS_SHARD)
    if case.row.outside is not None and len(ground.spots) > 1 and case.row.outside(case.argv):
        raise wording.ErrorReply(wording.OUTSIDE_KEYS)
    if not shards:
        return Outcome("it names no key, so the first server gets it", (ground.to(0, case.argv),))
    if ground.by_chance and len(case.keys) > 1:
        return Outcome(f"{_CHANCE}; with several keys it is refused (CROSSSLOT) unless the same one is drawn for all")
    what = "the key is" if len(case.keys) == 1 else "all keys are"
    way = _CHANCE if ground.by_chance else f"{what} on one shard: the request goes there as it came"
    return Outcome(way, (ground.to(shards[0], case.argv),))


_CHANCE = "the distribution is random: any server, drawn anew for every request"


def split(case: Case) -> Outcome:
    """One request for each shard that holds some of the keys."""
    if case.ground.by_chance:
        return Outcome(f"{_CHANCE} and every key")
    parts = case.ground.split(case.keys)
    if len(parts) == 1:
        return same_shard(case)
    width = 2 if case.row.name in PAIRS else 1
    sent = [
        case.ground.to(shard, [case.argv[0], *[case.argv[1 + width * at + w] for at in part for w in range(width)]])
        for shard, part in parts.items()
    ]
    way = f"the keys are on {len(parts)} shards: each gets its keys in one request, the replies become one"
    return Outcome(way, tuple(sent))


def every_node(case: Case) -> Outcome:
    """Sent to all servers; but a shard channel of a cluster has a slot."""
    if case.row.name == b"spublish" and case.ground.level.topology == "cluster":
        sent = case.ground.to(case.ground.shard(case.argv[1]), case.argv)
        return Outcome("the channel has a slot, as a key has: the request goes to its master as it came", (sent,))
    return Outcome(f"{case.ground.receivers} gets it, the replies become one", case.ground.to_all(case.argv))


def scan_nodes(case: Case) -> Outcome:
    """The cursor says which server."""
    try:
        place = scan.decode(case.argv[1], len(case.ground.homes))
    except scan.BadCursor:
        raise wording.ErrorReply(wording.BAD_CURSOR) from None
    words = [case.argv[0], b"%d" % place.cursor, *case.argv[2:]]
    way = f"the cursor means shard {place.shard}; while fewer than COUNT keys are found, the next shards follow"
    return Outcome(way, (case.ground.to_home(place.shard, words),))


def local(case: Case) -> Outcome:
    """Answered from what the session knows."""
    return Outcome("the proxy answers it itself, no server is asked")


def change_session(case: Case) -> Outcome:
    """SELECT, MULTI, WATCH ..."""
    if case.row.name == b"watch":
        return _alone(case, "until EXEC, DISCARD or UNWATCH")
    if case.row.name == b"multi":
        return Outcome("what follows, up to EXEC, goes to the shard of its first key on a connection of this client")
    if case.row.name == b"select":
        return _select(case)
    return Outcome("it changes what the proxy knows of this client")


def _select(case: Case) -> Outcome:
    ground = case.ground
    try:
        db = int(case.argv[1])
    except ValueError:
        raise wording.ErrorReply(wording.NOT_AN_INTEGER) from None
    if not 0 <= db < (1 if ground.is_translated else ground.instance.databases):
        raise wording.ErrorReply(wording.DB_RANGE)
    there = "" if ground.is_translated else f", where it is number {ground.level.db + db}"
    return Outcome(f"kept for this client: its next requests go over connections to that database{there}")


def block(case: Case) -> Outcome:
    """May wait for other clients."""
    if case.row.blocks is not None and not case.row.blocks(case.argv):
        return same_shard(case)
    return _alone(case, "as long as it waits")


def _alone(case: Case, how_long: str) -> Outcome:
    plain = same_shard(case)
    return Outcome(f"{plain.way}, on a connection of this client's own {how_long}", plain.sent)


SHARD_CHANNELS = frozenset({b"ssubscribe", b"sunsubscribe"})


def subscribe(case: Case) -> Outcome:
    """Listening needs one server, since PUBLISH goes to all; but a shard channel of a cluster has a slot."""
    if case.row.name in SHARD_CHANNELS and case.ground.level.topology == "cluster":
        return Outcome("the masters of the channels' slots get it, on connections of this client's own")
    return Outcome("one server gets it, which one depends on the client, on a connection of this client's own")


def refused(case: Case) -> Outcome:
    """Not served."""
    raise wording.ErrorReply(wording.refused(case.row))


TREATMENTS: dict[int, Callable[[Case], Outcome]] = {
    command.SINGLE: same_shard,
    command.SAME_SHARD: same_shard,
    command.SPLIT: split,
    command.ANY: same_shard,
    command.ALL: every_node,
    command.SCAN: scan_nodes,
    command.LOCAL: local,
    command.SESSION: change_session,
    command.BLOCK: block,
    command.SUBSCRIBE: subscribe,
    command.REFUSED: refused,
}
