"""Commands that change what a session is: CHANGES[command.name](session, argv) -> the reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hyper_proxy.common.errors import BackendError, NoDatabase
from hyper_proxy.protocol.redis import command, encode, handshake, wording
from hyper_proxy.protocol.redis.framing import join_words
from hyper_proxy.protocol.redis.transaction import Transaction
from hyper_proxy.tenant import policy

if TYPE_CHECKING:
    from hyper_proxy.conn_pool.lane import Lane
    from hyper_proxy.protocol.redis.session import RedisSession

# CLIENT REPLY
ON = 0
OFF = 1
SKIP = 2  # the answer to the next request is dropped
SKIPPING = 3  # that to the request at hand is


def auth(session: RedisSession, argv: list[bytes]) -> bytes:
    """AUTH [user] password."""
    user, password = handshake.parse_auth(argv)
    if not policy.needs_login(session.instance) and len(argv) == 2:
        raise wording.ErrorReply(wording.NO_PASSWORD_SET)
    _log_in(session, user, password)
    return encode.OK


def _log_in(session: RedisSession, user: str, password: bytes) -> None:
    instance = session.instance
    free_for_all = not policy.needs_login(instance) and user == handshake.DEFAULT_USER
    if not free_for_all and not policy.may_log_in(instance, user, password):
        raise wording.ErrorReply(wording.WRONG_PASS)
    session.user = user
    session.authenticated = True
    session.refresh()


def hello(session: RedisSession, argv: list[bytes]) -> bytes:
    """HELLO [2|3 [AUTH user password] [SETNAME name]]."""
    asked = handshake.parse_hello(argv)
    if asked.auth is not None:
        _log_in(session, *asked.auth)
    if not session.authenticated:
        raise wording.ErrorReply(wording.HELLO_NO_AUTH)
    if asked.name is not None:
        session.name = asked.name
    if asked.resp:
        if session.transaction is not None and asked.resp != session.resp:
            session.transaction.follow(join_words([b"HELLO", b"%d" % asked.resp]))
        session.resp = asked.resp
        session.refresh()
    return handshake.hello_reply(session)


def chosen_db(word: bytes, databases: int) -> int:
    """The number of one of so many databases. Raises ErrorReply."""
    db = wording.number(word.removeprefix(b"-"))
    if db is None:
        raise wording.ErrorReply(wording.NOT_AN_INTEGER)
    if word.startswith(b"-") or db >= databases:
        raise wording.ErrorReply(wording.DB_RANGE)
    return db


def select(session: RedisSession, argv: list[bytes]) -> bytes:
    """SELECT db: kept for this client; a server is asked first, so that no database is OK that is not there."""
    db = chosen_db(argv[1], session.instance.databases if session.storage.forwards else 1)
    if db != session.db and session.storage.forwards:
        _ask_any(session, session.storage.lanes(db, session.resp, session.sequence))
        if session.transaction is not None:
            session.transaction.follow(join_words([b"SELECT", b"%d" % (session.storage.level.db + db)]))
    session.db = db
    session.refresh()
    return encode.OK


def _ask_any(session: RedisSession, lanes: list[Lane]) -> None:
    """Has a server this database? The first that answers says it. Raises ErrorReply with its words, BackendError when
    none answers."""
    failure: BackendError | None = None
    for lane in lanes:
        try:
            session.batch.ask(lane, join_words([b"PING"]), command.ADMIN)
        except NoDatabase as fault:
            raise wording.ErrorReply(fault.said.encode()) from fault
        except BackendError as fault:
            if fault.kind == "protocol":
                raise
            failure = fault
        else:
            return
    if failure is not None:
        raise failure


def quit_(session: RedisSession, argv: list[bytes]) -> bytes:
    """QUIT."""
    session.closing = True
    return encode.OK


def reset(session: RedisSession, argv: list[bytes]) -> bytes:
    """RESET: as if the client had just connected."""
    session.let_go()
    session.db = 0
    session.resp = 2
    session.name = b""
    session.user = handshake.DEFAULT_USER
    if session.replies == OFF:  # an answer that is being skipped stays so, as in redis
        session.replies = ON
    session.authenticated = not policy.needs_login(session.instance)
    session.refresh()
    return encode.RESET


def client_reply(session: RedisSession, argv: list[bytes]) -> bytes:
    """CLIENT REPLY ON|OFF|SKIP."""
    mode = argv[2].lower()
    if mode not in (b"on", b"off", b"skip"):
        raise wording.ErrorReply(wording.SYNTAX)
    silent = session.replies == OFF
    if mode == b"skip":
        session.replies = OFF if silent else SKIP
    else:
        session.replies = ON if mode == b"on" else OFF
    session.refresh()
    return encode.OK if mode == b"on" else b""


def _need_redis(session: RedisSession, name: bytes) -> None:
    kv = session.storage
    if not kv.forwards:
        raise wording.ErrorReply(wording.unserved(name, kv.kind, kv.place).encode())


def multi(session: RedisSession, argv: list[bytes]) -> bytes:
    """MULTI."""
    _need_redis(session, b"multi")
    if session.transaction is None:
        session.transaction = Transaction(session)
    session.transaction.begin()
    session.refresh()
    return encode.OK


def execute(session: RedisSession, argv: list[bytes]) -> bytes:
    """EXEC."""
    if session.transaction is None or not session.transaction.begun:
        raise wording.ErrorReply(wording.EXEC_WITHOUT_MULTI)
    return session.transaction.execute()


def discard(session: RedisSession, argv: list[bytes]) -> bytes:
    """DISCARD."""
    if session.transaction is None or not session.transaction.begun:
        raise wording.ErrorReply(wording.DISCARD_WITHOUT_MULTI)
    session.transaction.undo()
    return encode.OK


def watch(session: RedisSession, argv: list[bytes]) -> bytes:
    """WATCH key ...: all on one shard."""
    _need_redis(session, b"watch")
    if session.transaction is None:
        session.transaction = Transaction(session)
    return session.transaction.watch(argv)


def unwatch(session: RedisSession, argv: list[bytes]) -> bytes:
    """UNWATCH."""
    if session.transaction is not None:
        session.transaction.undo()
    return encode.OK


def nothing_to_leave(session: RedisSession, argv: list[bytes]) -> bytes:
    """UNSUBSCRIBE of a client that listens to nothing."""
    kind = encode.bulk(argv[0].lower())
    names = [encode.bulk(name) for name in argv[1:]] or [encode.null(session.resp)]
    return b"".join(encode.push([kind, name, encode.integer(0)], session.resp) for name in names)


CHANGES: dict[bytes, Callable[[RedisSession, list[bytes]], bytes]] = {
    b"auth": auth,
    b"client|reply": client_reply,
    b"discard": discard,
    b"exec": execute,
    b"hello": hello,
    b"multi": multi,
    b"quit": quit_,
    b"reset": reset,
    b"select": select,
    b"unwatch": unwatch,
    b"watch": watch,
}
