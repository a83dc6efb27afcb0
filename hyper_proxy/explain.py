"""Where a request would go, and why: found by the tables and placements of the data path; nothing is opened."""

from __future__ import annotations

from typing import Any

from hyper_proxy.common.keyname import digest
from hyper_proxy.config.kinds import LOCAL
from hyper_proxy.config.model import Config, Server
from hyper_proxy.config.notes import no_instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Key, Place, Sent
from hyper_proxy.protocol.table import PROTOCOLS


def explain(config: Config, instance_name: str, words: list[bytes]) -> Explanation:
    """What becomes of the request that consists of these words. Raises BadQuestion."""
    instance = config.instance(instance_name)
    if instance is None:
        raise BadQuestion(no_instance(instance_name, [one.name for one in config.instances]))
    if not words:
        raise BadQuestion("which command? A request has at least one word")
    if len(words) == 1 and b" " in words[0].strip():
        raise BadQuestion(f"{_shown(words[0])} is one word: write the request word by word, no quotes around it all")
    return PROTOCOLS[instance.protocol].explain(instance, words)


def as_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as plain data. Bytes that are no UTF-8 become lone surrogates, as in Python's arguments."""
    facts, outcome = explanation.facts, explanation.outcome
    return {
        "instance": explanation.instance.name,
        "protocol": explanation.instance.protocol,
        "request": [_text(word) for word in explanation.request],
        "command": {
            "name": facts.name,
            "class": facts.klass,
            "treatment": facts.treatment,
            "reduce": facts.reduce or None,
            "needs_allow": facts.allow or None,
            "allowed": facts.allowed,
        },
        "served": not outcome.error,
        "error": outcome.error or None,
        "way": outcome.way,
        "keys": [_key(key) for key in explanation.keys],
        "requests": [_sent(sent) for sent in outcome.sent],
    }


def as_text(explanation: Explanation) -> str:
    """The explanation for people."""
    facts, outcome = explanation.facts, explanation.outcome
    instance = explanation.instance
    lines = [f"{instance.name} ({instance.protocol}): {_words(explanation.request)}"]
    reduce = f", reduced by {facts.reduce}" if facts.reduce else ""
    lines.append(f"command: {facts.name}, class {facts.klass}, treatment {facts.treatment}{reduce}")
    if facts.allow:
        named = "as it is" if facts.allowed else "and is not"
        lines.append(f"must be allowed by the instance (allow = [\"{facts.allow}\"]), {named}")
    for key in explanation.keys:
        name = f"key {_shown(key.key)} (digest {digest(key.key)})"
        several = len(key.places) > 1
        lines += [
            f"{name}{f', level {place.level} ({place.storage})' if several else ''}: {_described(key, place)}"
            for place in key.places
        ]
    lines.append(f"way: {outcome.way}")
    lines += [f"  -> {_where(sent.shard, sent.server)}{sent.route and ', '}{sent.route}: {_words(sent.words)}"
              for sent in outcome.sent]  # fmt: skip
    if outcome.error:
        lines.append(f"the client reads: {outcome.error}")
    return "\n".join(lines)


def _key(key: Key) -> dict[str, Any]:
    return {"key": _text(key.key), "digest": digest(key.key), "levels": [_place(place) for place in key.places]}


def _place(place: Place) -> dict[str, Any]:
    return {
        "level": place.level,
        "storage": place.storage,
        "distribution": place.distribution,
        "hashed": _text(place.hashed),
        "hash": place.hash,
        "hash_value": place.hash_value,
        "shard": place.shard,
        "node": place.server.address if place.server else None,
        "label": place.server.label if place.server else None,
        "pool": place.pool or None,
        "route": place.route or None,
        "db": place.db,
        "key_sent": _text(place.sent),
    }


def _sent(sent: Sent) -> dict[str, Any]:
    return {
        "shard": sent.shard,
        "node": sent.server.address if sent.server else None,
        "label": sent.server.label if sent.server else None,
        "words": [_text(word) for word in sent.words],
    }


def _described(key: Key, place: Place) -> str:
    parts = []
    if place.hash_value is not None:
        parts.append(f"{place.hash or 'hash'} of {_shown(place.hashed)} is {place.hash_value}")
    if place.distribution is not None:
        in_pool = f"{place.pool}, " if place.pool else ""
        parts.append(f"{place.distribution} gives {in_pool}{_where(place.shard, place.server)}")
    elif place.storage == LOCAL:
        parts.append("a copy in each worker")
    else:
        parts.append(_where(place.shard, place.server))
    if place.route:
        parts.append(place.route)
    if place.db:
        parts.append(f"database {place.db}")
    if place.sent != key.key:
        parts.append(f"sent as {_shown(place.sent)}")
    return ", ".join(parts)


def _where(shard: int | None, server: Server | None) -> str:
    if server is None:
        return "any server" if shard is None else f"shard {shard}, found out"
    alias = f" ({server.name})" if server.name else ""
    return f"shard {shard}, {server.address}{alias}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _shown(data: bytes) -> str:
    """In quotes, where what cannot be printed is escaped."""
    text = data.decode("utf-8", "backslashreplace")
    return f"'{text}'" if text.isprintable() and text.encode() == data else repr(data)[1:]


def _words(words: tuple[bytes, ...]) -> str:
    shown = [_shown(word) for word in words]
    return " ".join(word if " " in word or "\\" in word or word == "''" else word[1:-1] for word in shown)
