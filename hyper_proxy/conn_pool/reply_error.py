"""The exception of parsers; apart, so that the compiled and the plain form of a parser raise the same one."""


class ReplyError(Exception):
    """The server sent something that is not a reply of its protocol; the connection can't be used any more."""
