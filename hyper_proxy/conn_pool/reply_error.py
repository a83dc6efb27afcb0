"""The exceptions of parsers; apart, so that the compiled and the plain form of a parser raise the same one."""


class ReplyError(Exception):
    """The server sent something that is not a reply of its protocol; the connection can't be used any more.

    kind: of the BackendError that it becomes. whole: the text says all, what the server sent need not be shown.
    """

    kind = "protocol"
    whole = False


class Refusal(ReplyError):
    """The server has refused in words, which are told, and what to change."""

    whole = True


class NotSelected(Refusal):
    """The server is well, and does not take the database that a client has chosen. said: its words."""

    kind = "client"

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class Loading(ReplyError):
    """The server is what it should be, but reads its keys from its disk, and serves nobody until it has them."""

    kind = "loading"
    whole = True
