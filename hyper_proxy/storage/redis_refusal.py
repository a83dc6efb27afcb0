"""What it means that a redis does not greet back: its words, and the key of the configuration that they are about."""

from __future__ import annotations

from hyper_proxy.conn_pool.reply_error import Loading, Refusal, ReplyError

LOADING = "LOADING "
SHOWN_BYTES = 200
# What servers of several versions say to AUTH.
WRONG = ("WRONGPASS", "ERR invalid password")
WANTS_NONE = ("no password is set", "without any password configured")
GIVEN = ", with args beginning with"  # a server that does not know AUTH repeats the password


def words_of(answer: bytes) -> str:
    """The words of an error, its code included."""
    line = answer[1 : 1 + SHOWN_BYTES].partition(b"\r")[0].decode(errors="replace")
    return line.partition(GIVEN)[0].strip()


def refusal(what: str, answer: bytes, keys: str, username: str) -> ReplyError:
    """Why this answer to `what` is not the one that is wanted. keys: how the keys of user and password begin."""
    if not answer.startswith(b"-"):
        return ReplyError(f"{what} was answered {answer[:80].decode(errors='replace').strip()!r}")
    said, password = words_of(answer), f"`{keys}password`"
    if said.startswith(LOADING):
        return Loading(said.removeprefix(LOADING)[:80])
    if said.startswith("NOAUTH"):
        return Refusal(f"login failed: the server wants a password, and the level has none ({password}): {said}")
    if what == "AUTH" and said.startswith(WRONG):
        user = f"`{keys}username` or " if username else ""
        return Refusal(f"login failed: the server refuses {user}{password} of the level: {said}")
    if what == "AUTH" and any(words in said for words in WANTS_NONE):
        return Refusal(f"login failed: the server wants no password, and the level has one ({password}): {said}")
    if what.startswith("SELECT"):
        return Refusal(f"greeting failed: the server does not take `db` of the level, {what}: {said}")
    return Refusal(f"greeting failed: {what} was refused: {said}")
