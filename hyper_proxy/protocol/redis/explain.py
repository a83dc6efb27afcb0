"""What the redis front makes of a request of a client that has just connected: one function a treatment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hyper_proxy.common.errors import BackendError, ClientError, PolicyDenied
from hyper_proxy.config.model import Instance
from hyper_proxy.config.notes import suggest
from hyper_proxy.conn_pool.moving.pools import check_all
from hyper_proxy.conn_pool.moving.schedule import Schedule
from hyper_proxy.conn_pool.rooms.mirror import UNTOLD
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome, Sent
from hyper_proxy.protocol.redis import command, commands, conversation, moving, scan, translate, wording
from hyper_proxy.protocol.redis.command import Command
from hyper_proxy.protocol.redis.framing import Framer, join_words
from hyper_proxy.protocol.redis.local import LOCAL
from hyper_proxy.protocol.redis.newcomer import Newcomer
from hyper_proxy.protocol.redis.reach import with_server_db
from hyper_proxy.stats.classes import CLASSES
from hyper_proxy.storage.redis import check_own
from hyper_proxy.storage.redis_speech import RedisSpeech
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
# Changes of a session that need no more than the words and the configuration.
SAID = frozenset({b"auth", b"client|reply", b"discard", b"exec", b"hello"})


@dataclass(frozen=True, slots=True)
class Case:
    """One request and all that decides about it; `keys` are the words that are keys."""

    ground: Ground
    row: Command
    argv: list[bytes]
    keys: list[bytes]

    @property
    def stage(self) -> int:
        """How far the keys of the level have moved by now; 0 where they do not, or where all are at their old home."""
        schedule = Schedule.of(self.ground.level)
        return schedule.ahead() if schedule else 0

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
        said = str(fault).removeprefix("ERR ").partition(", with args")[0]
        known = argv[0].lower() in commands.COMMANDS
        raise BadQuestion(said + ("" if known else suggest(argv[0].decode("latin-1"), commands.FACTS))) from fault
    if row.name in PAIRS and not len(argv) % 2:
        raise BadQuestion(wording.wrong_arity(row).decode().removeprefix("ERR "))
    ground = Ground(instance, row.klass == command.READ and not _is_alone(row, argv))
    case = Case(ground, row, argv, [argv[position] for position in commands.keys_of(row, argv)])
    allow = wording.permission(row) if row.dangerous else ""
    allowed = not allow or allow in instance.allow
    facts = Facts(row.name.decode(), CLASSES[row.klass], NAMES[row.treatment], row.reduce, allow, allowed)
    keys = tuple(Key(key, ground.places(key, sent=key)) for key in case.keys)
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
        if any(len(key) > limits.max_key_bytes for key in case.keys):
            raise wording.ErrorReply(wording.long_key(limits.max_key_bytes))
        if case.ground.is_translated and (row.treatment not in AT_HOME or row.name in NEEDS_REDIS):
            return translated(case)
        found = TREATMENTS[row.treatment](case)
        if case.keys:
            _check_way(case, found.sent)
        return found
    except wording.ErrorReply as fault:
        return Outcome("nothing is sent", error=str(fault))
    except (BackendError, ClientError, PolicyDenied) as fault:
        return Outcome("nothing is sent", error=f"ERR {fault}")


def _check_way(case: Case, sent: tuple[Sent, ...]) -> None:
    """What stands between the proxy and its servers may refuse requests. Raises BackendError."""
    instance, level = case.ground.instance, case.ground.level
    for one in sent:
        request = join_words(list(one.words))
        where = one.server.where if one.server else ""
        if level.is_mirrored and not case.ground.reads and RedisSpeech().keys_written(request) is None:
            raise BackendError(instance.name, where, "room", UNTOLD)
        if case.stage:
            try:
                moving.request_keys(request)
            except ClientError as fault:
                raise BackendError(instance.name, where, "moving", str(fault)) from None


def _check_answer(reply: bytes) -> None:
    """Raises ErrorReply for an answer of the proxy that is one."""
    if reply.startswith(b"-"):
        raise wording.ErrorReply(reply[1:-2])


def translated(case: Case) -> Outcome:
    """The storage is no redis."""
    runs = case.ground.dry_runs()
    if case.row.name in NEEDS_REDIS:
        raise wording.ErrorReply(wording.unserved(case.row.name, runs[0].kind, runs[0].place).encode())
    for run in runs:
        _check_answer(translate.execute(run, case.row, case.argv, Newcomer(case.ground.instance)))
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
    words = with_server_db(ground.instance, case.row.name, case.argv)
    as_it_came = "as it came" if words == case.argv else "with the number that the database has there"
    way = _CHANCE if ground.by_chance else f"{what} on one shard: the request goes there {as_it_came}"
    return Outcome(way, (ground.to(shards[0], words),))


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
    if case.row.name == b"flushall" and case.ground.level.db:
        raise wording.ErrorReply(wording.OTHERS_TOO)
    check_all(case.row.name, case.stage)
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
    _check_answer(LOCAL[case.row.name](Newcomer(case.ground.instance), case.argv))
    return Outcome("the proxy answers it itself, no server is asked")


def change_session(case: Case) -> Outcome:
    """SELECT, MULTI, WATCH ..."""
    if case.row.name in SAID:
        stranger: Any = Newcomer(case.ground.instance)
        _check_answer(conversation.CHANGES[case.row.name](stranger, case.argv))
    if case.row.name == b"watch":
        return _alone(case, "until EXEC, DISCARD or UNWATCH")
    if case.row.name == b"multi":
        try:
            check_own(case.ground.level)
        except ClientError as fault:
            return Outcome(_LONELY, error=f"ERR {fault}")
        return Outcome("what follows, up to EXEC, goes to the shard of its first key on a connection of this client")
    if case.row.name == b"select":
        return _select(case)
    return Outcome("it changes what the proxy knows of this client")


_LONELY = "MULTI itself is answered OK, but each command with a key behind it is refused, and EXEC does none of them"


def _select(case: Case) -> Outcome:
    ground = case.ground
    db = conversation.chosen_db(case.argv[1], 1 if ground.is_translated else ground.instance.databases)
    there = "" if ground.is_translated else f", where it is number {ground.level.db + db}"
    return Outcome(f"kept for this client: its next requests go over connections to that database{there}")


def block(case: Case) -> Outcome:
    """May wait for other clients."""
    if case.row.blocks is not None and not case.row.blocks(case.argv):
        return same_shard(case)
    return _alone(case, "as long as it waits")


def _alone(case: Case, how_long: str) -> Outcome:
    plain = same_shard(case)
    check_own(case.ground.level)
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
