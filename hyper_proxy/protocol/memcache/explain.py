"""What the memcache front makes of one request, given as the words of its line; a value is not needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyper_proxy.common.errors import ClientError
from hyper_proxy.config.model import Instance
from hyper_proxy.config.notes import suggest
from hyper_proxy.hashing.lushan import DbOf, db_rule
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.memcache import echo, lushan, meta, stats, translate, wording
from hyper_proxy.protocol.memcache.command import LOCAL, REFUSED, RETRIEVE_TOUCHING, Command
from hyper_proxy.protocol.memcache.commands import COMMANDS, UNKNOWN
from hyper_proxy.protocol.memcache.framing import Framer, split_words
from hyper_proxy.protocol.memcache.numbers import read_signed32, read_unsigned32
from hyper_proxy.stats.classes import CLASSES, READ
from hyper_proxy.storage.lushan import key_there
from hyper_proxy.storage.memcache_replies import ERRORS
from hyper_proxy.tenant import policy

LUSHAN_GETS = (b"get", b"bget")
NOTHING = "nothing is sent"
MERGED = "the replies become one"
AT_HOME = "the proxy answers it itself, no server is asked"


class Question:
    """One line, framed by the framer that frames real requests."""

    def __init__(self, instance: Instance, words: Sequence[bytes]) -> None:
        limits = instance.limits
        self.instance = instance
        self.line = b" ".join(words) + b"\r\n"
        self.framer = Framer(limits.max_key_bytes, limits.max_value_bytes, limits.max_line_bytes)
        self.fault = ""
        try:
            self.framer.scan(self.line, 0)  # -1 when only the value is missing: the line is read by then
        except ClientError as fault:
            self.fault = _text(wording.client_error(fault))
        self.row: Command = self.framer.command
        self.ground = Ground(instance, self.row.klass == READ or self.row.name == b"stats")

    @property
    def storage(self) -> str:
        """The kind of storage."""
        return self.ground.level.storage

    def words(self) -> list[bytes]:
        """All behind the command's name."""
        return split_words(self.line, self.framer.args, self.framer.text_end)

    def arguments(self) -> list[bytes]:
        """The same without noreply."""
        words = self.words()
        return words[:-1] if self.framer.noreply else words

    def client_keys(self) -> list[bytes]:
        """The keys as the client writes them."""
        framer = self.framer
        if self.fault or framer.error is not None or self.row.form >= LOCAL:
            return []
        if self.row.form <= RETRIEVE_TOUCHING:
            return split_words(self.line, framer.key_start, framer.text_end)
        return [self.line[framer.key_start : framer.key_end]]

    def placed(self, key: bytes) -> bytes:
        """What is hashed for a key: the flag b says that it is written in base64."""
        return meta.decode_key(key) if self.framer.encoded else key


def explain(instance: Instance, words: list[bytes]) -> Explanation:
    """Raises BadQuestion for a line that is no request of memcached."""
    for word in words:
        if not word or any(byte in b" \r\n\0" for byte in word):
            raise BadQuestion(f"'{_text(word)}' is no word of a memcache line: empty, or with a space or line end")
    question = Question(instance, words)
    row, framer = question.row, question.framer
    if row is UNKNOWN and not question.fault:
        raise BadQuestion(f"memcache has no command '{_text(words[0])}'{suggest(_text(words[0]), _NAMES)}")
    if framer.error == wording.ERROR:
        raise BadQuestion(f"'{_text(row.name)}' takes {_counts(row)} words, itself included; {len(words)} were given")
    allow = _text(row.name).upper() if row.dangerous else ""
    allowed = not allow or policy.allows(instance, allow)
    facts = Facts(_text(row.name), CLASSES[row.klass], treatment(question), allow=allow, allowed=allowed)
    keys: tuple[Key, ...] = ()
    try:
        keys = tuple(_key(question, key) for key in question.client_keys())
        outcome = _outcome(question)
    except ClientError as fault:
        outcome = Outcome(NOTHING, error=_text(wording.client_error(fault)))
    return Explanation(instance, tuple(words), facts, keys, outcome)


_NAMES = [name.decode() for name in COMMANDS]


def treatment(question: Question) -> str:
    """The kind of way that a request takes."""
    row = question.row
    if row.form == REFUSED:
        return "refused"
    if row.form == LOCAL:
        return "all" if row.name in TO_ALL else "local"
    return "split" if row.form <= RETRIEVE_TOUCHING else "single"


def _counts(row: Command) -> str:
    return f"{row.least} or more" if not row.most else f"{row.least} to {row.most}"


def _key(question: Question, key: bytes) -> Key:
    return Key(key, question.ground.places(question.placed(key), sent=key))


def _lushan(question: Question) -> DbOf:
    """The rule of the level: key to database."""
    rule = question.ground.level.lushan_db
    assert rule is not None, "a checked configuration has a rule for every lushan level"
    return db_rule(rule)


def _outcome(question: Question) -> Outcome:
    row, framer, ground = question.row, question.framer, question.ground
    if question.fault or framer.error is not None:
        return Outcome(NOTHING, error=question.fault or _text(framer.error))
    if row.form == REFUSED:
        return Outcome(NOTHING, error=_text(wording.refused(row.name, row.why)))
    if row.form == LOCAL:
        return _local(question)
    if ground.is_translated:
        return _embedded(question)
    if question.storage == "lushan":
        return _from_lushan(question)
    if framer.quiet > 1:
        words = split_words(question.line, framer.key_end, framer.cut)
        return Outcome(NOTHING, error=_text(meta.flag_error(row.name, words)))
    if ground.by_chance:
        return Outcome("the distribution is random: any server, drawn anew for every key of every request")
    if framer.several:
        head = split_words(question.line, 0, framer.key_start)
        return _split(question, head, question.client_keys())
    request = framer.request(question.line, 0, len(question.line))
    if framer.encoded:
        error = echo.refusal(framer, question.line)
        if error:
            return Outcome(NOTHING, error=_text(error))
        request, _ = echo.unechoed(framer, question.line, request)
    way = "the request goes to the shard of its key" + (", and no answer is waited for" if framer.noreply else "")
    return Outcome(way, (ground.to(ground.shard(question.placed(question.client_keys()[0])), request.split()),))


def _split(question: Question, head: list[bytes], sent: Sequence[bytes]) -> Outcome:
    """`sent`: the keys as the servers know them."""
    ground = question.ground
    parts = ground.split(question.client_keys())
    requests = tuple(ground.to(shard, [*head, *[sent[at] for at in part]]) for shard, part in parts.items())
    if len(parts) == 1:
        return Outcome("all keys are on one shard: one request", requests)
    return Outcome(f"the keys are on {len(parts)} shards: each gets its keys, the items are merged in order", requests)


def _from_lushan(question: Question) -> Outcome:
    name = question.row.name
    if name not in LUSHAN_GETS:
        why = lushan.NO_CAS if name == b"gets" else lushan.GET_ONLY
        return Outcome(NOTHING, error=_text(wording.refused(name, why)))
    db_of = _lushan(question)
    return _split(question, [b"get"], [key_there(db_of(key), key) for key in question.client_keys()])


def _embedded(question: Question) -> Outcome:
    """A value is not given: one that can be stored everywhere stands for it."""
    words = [question.row.name, *question.arguments()]
    for run in question.ground.dry_runs():
        reply = translate.execute(run, words, b"{}" if run.fields else b"0")
        if reply.startswith(ERRORS):
            return Outcome(NOTHING, error=_text(reply))
    return Outcome(question.ground.own_way)


def _local(question: Question) -> Outcome:
    special = TO_ALL.get(question.row.name) or ALONE.get(question.row.name)
    return special(question) if special else Outcome(AT_HOME)


def _flush(question: Question) -> Outcome:
    if not policy.allows(question.instance, "FLUSH_ALL"):
        return Outcome(NOTHING, error=_text(wording.NO_FLUSH))
    words = question.words()
    delay = read_signed32(words[0]) if len(words) != (1 if question.framer.noreply else 0) else 0
    if delay is None:
        return Outcome(NOTHING, error=_text(wording.BAD_EXPTIME))
    if question.ground.is_translated:
        return _embedded(question)
    if question.storage == "lushan":
        return Outcome(NOTHING, error=_text(wording.refused(question.row.name, "Lushan is read only")))
    return _to_all(question, [b"%d" % delay] if question.arguments() else [])


def _resize(question: Question) -> Outcome:
    if not policy.allows(question.instance, "CACHE_MEMLIMIT"):
        return Outcome(NOTHING, error=_text(wording.NO_RESIZE))
    limit = read_unsigned32(question.words()[0])
    if limit is None:
        return Outcome(NOTHING, error=_text(wording.ERROR))
    if question.ground.is_translated or question.storage != "memcache":
        return Outcome(NOTHING, error=_text(wording.refused(question.row.name, wording.ONE_LEVEL)))
    return _to_all(question, [b"%d" % limit])


def _verbosity(question: Question) -> Outcome:
    if read_unsigned32(question.words()[0]) is None:
        return Outcome(NOTHING, error=_text(wording.BAD_FORMAT))
    return Outcome(AT_HOME)


def _stats(question: Question) -> Outcome:
    words = question.words()
    refusal = stats.refusal(words)
    if refusal is not None:
        return Outcome(NOTHING, error=_text(refusal))
    asked = question.storage == "memcache" and not question.ground.is_translated
    return _to_all(question, words) if asked else Outcome(AT_HOME)


def _to_all(question: Question, words: Sequence[bytes]) -> Outcome:
    """The command goes on with these words."""
    ground = question.ground
    way = f"{ground.receivers} gets it, " + ("and no answer is waited for" if question.framer.noreply else MERGED)
    return Outcome(way, ground.to_all([question.row.name, *words]))


TO_ALL: dict[bytes, Callable[[Question], Outcome]] = {
    b"flush_all": _flush,
    b"cache_memlimit": _resize,
    b"stats": _stats,
}
ALONE: dict[bytes, Callable[[Question], Outcome]] = {b"verbosity": _verbosity}


def _text(reply: bytes | None) -> str:
    return (reply or b"").decode("utf-8", "backslashreplace").strip()
