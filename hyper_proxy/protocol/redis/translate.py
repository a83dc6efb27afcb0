"""redis commands answered from a key-value storage (sqlite): one row a verb.

The session has checked arity and permission; a verb gets the storage, the words of the request and a view of the
client, and returns the encoded reply. It may block, in the client's greenlet only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hyper_proxy.common.errors import ClientError
from hyper_proxy.protocol.redis import encode, wording
from hyper_proxy.protocol.redis import translate_expiry as expiry
from hyper_proxy.protocol.redis import translate_hashes as hashes
from hyper_proxy.protocol.redis import translate_keyspace as keyspace
from hyper_proxy.protocol.redis import translate_strings as strings
from hyper_proxy.protocol.redis.command import Command
from hyper_proxy.protocol.redis.translate_common import View
from hyper_proxy.storage.keyvalue import KeyValue

Verb = Callable[[KeyValue, list[bytes], View], bytes]

VERBS: dict[bytes, Verb] = {
    b"append": strings.append,
    b"dbsize": keyspace.dbsize,
    b"decr": strings.decr,
    b"decrby": strings.decrby,
    b"del": keyspace.delete,
    b"exists": keyspace.exists,
    b"expire": expiry.expire_verb(1000, absolute=False),
    b"expireat": expiry.expire_verb(1000, absolute=True),
    b"expiretime": expiry.ttl_verb(1000, absolute=True),
    b"flushall": keyspace.flush,
    b"flushdb": keyspace.flush,
    b"get": strings.get,
    b"getdel": strings.getdel,
    b"getex": strings.getex,
    b"getrange": strings.getrange,
    b"getset": strings.getset,
    b"incr": strings.incr,
    b"incrby": strings.incrby,
    b"incrbyfloat": strings.incrbyfloat,
    b"keys": keyspace.keys,
    b"mget": strings.mget,
    b"mset": strings.mset,
    b"msetnx": strings.msetnx,
    b"persist": expiry.persist,
    b"pexpire": expiry.expire_verb(1, absolute=False),
    b"pexpireat": expiry.expire_verb(1, absolute=True),
    b"pexpiretime": expiry.ttl_verb(1, absolute=True),
    b"psetex": strings.psetex,
    b"pttl": expiry.ttl_verb(1, absolute=False),
    b"scan": keyspace.scan,
    b"set": strings.set_,
    b"setex": strings.setex,
    b"setnx": strings.setnx,
    b"setrange": strings.setrange,
    b"strlen": strings.strlen,
    b"substr": strings.getrange,
    b"touch": keyspace.exists,
    b"ttl": expiry.ttl_verb(1000, absolute=False),
    b"type": keyspace.type_,
    b"unlink": keyspace.delete,
}

HASH_VERBS: dict[bytes, Verb] = {
    b"hdel": hashes.hdel,
    b"hexists": hashes.hexists,
    b"hget": hashes.hget,
    b"hgetall": hashes.hgetall,
    b"hincrby": hashes.hincrby,
    b"hkeys": hashes.hkeys,
    b"hlen": hashes.hlen,
    b"hmget": hashes.hmget,
    b"hmset": hashes.hmset,
    b"hset": hashes.hset,
    b"hsetnx": hashes.hsetnx,
    b"hstrlen": hashes.hstrlen,
    b"hvals": hashes.hvals,
}
"""Those over values that are objects (KeyValue.fields)."""


def verbs_of(fields: Sequence[str]) -> dict[bytes, Verb]:
    """What is served where values have these fields."""
    return VERBS | HASH_VERBS if fields else VERBS


def execute(kv: KeyValue, command: Command, argv: list[bytes], view: View) -> bytes:
    """The encoded reply of `command`; a bad argument is an error reply. Raises BackendError when the storage fails."""
    verb = VERBS.get(command.name) or (HASH_VERBS.get(command.name) if kv.fields else None)
    if verb is None:
        served = " ".join(sorted(name.decode().upper() for name in verbs_of(kv.fields)))
        return encode.error(f"{wording.unserved(command.name, kv.kind, kv.place)} (it serves: {served})")
    try:
        return verb(kv, argv, view)
    except ClientError as error:
        return encode.error(b"ERR " + str(error).encode("utf-8", "surrogateescape"))
