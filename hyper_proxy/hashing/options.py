"""Readers of the options behind the name of a hash; each makes a factory for a row of the table."""

from __future__ import annotations

from collections.abc import Callable

from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.hash import Hash


def nothing(make: Callable[[], Hash]) -> Callable[[tuple[str, ...]], Hash]:
    """A hash without options; that there are none was checked when its name was read."""
    return lambda options: make()


def signedness(make: Callable[[bool], Hash]) -> Callable[[tuple[str, ...]], Hash]:
    """A hash of C `char`s: signed as on x86, or with the option "unsigned" as on ARM."""

    def read(options: tuple[str, ...]) -> Hash:
        if options not in ((), ("unsigned",)):
            raise HashingError(f"the only option of this hash is '-unsigned', found '-{'-'.join(options)}'")
        return make(not options)

    return read
