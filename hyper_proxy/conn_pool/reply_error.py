"""The exceptions of parsers; apart, so that the compiled and the plain form of a parser raise the same one."""


class ReplyError(Exception):
    """The server sent something that is not a reply of its protocol; the connection can't be used any more.

    kind: of the BackendError that it becomes.
    """

    kind = "protocol"


class Loading(ReplyError):
    """The server is what it should be, but reads its keys from its disk, and serves nobody until it has them."""

    kind = "loading"
