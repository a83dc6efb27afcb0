"""Readers of the options behind the name of a hash; each makes a factory for a row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hyper_proxy.hashing.errors import HashingError
from hyper_proxy.hashing.functions.parts import Number, Part, PartHash, SmartNumber, Until
from hyper_proxy.hashing.hash import Hash

Options = tuple[str, ...]
Factory = Callable[[Options], Hash]

DELIMITERS: dict[str, bytes] = {"point": b".", "underscore": b"_", "pound": b"#"}


def nothing(make: Callable[[], Hash]) -> Factory:
    """A hash without options; that there are none was checked when its name was read."""
    return lambda options: make()


def signedness(make: Callable[[bool], Hash]) -> Factory:
    """A hash of C `char`s: signed as on x86, or with the option "unsigned" as on ARM."""

    def read(options: Options) -> Hash:
        if options not in ((), ("unsigned",)):
            raise HashingError(f"the only option of this hash is '-unsigned', found '-{'-'.join(options)}'")
        return make(not options)

    return read


def read_part(options: Options, numbers: bool) -> Part:
    """The part of a key that `num-5`, `point`, `smartnum` ... mean, in Weibo's words."""
    name, *rest = options
    offset = rest[0] if rest else "0"
    if len(rest) < 2 and offset.isascii() and offset.isdigit():
        if name == "smartnum" and not rest:
            return SmartNumber()
        if name == "num" and numbers:
            return Number(int(offset))
        if name in DELIMITERS:
            return Until(DELIMITERS[name], int(offset))
    raise HashingError(f"cannot read the option '-{'-'.join(options)}'")


def weibo(make: Callable[[], Hash], forms: Mapping[str, Callable[[], Hash]], numbers: bool = False) -> Factory:
    """A hash of the key, of a part of it, or one of some other `forms`; "range" means nothing, "id" means "num"."""

    def read(options: Options) -> Hash:
        cleaned = tuple("num" if option == "id" else option for option in options if option != "range")
        if not cleaned:
            return make()
        if len(cleaned) == 1 and cleaned[0] in forms:
            return forms[cleaned[0]]()
        return PartHash(read_part(cleaned, numbers), make())

    return read


def delimiter(make: Callable[[bytes], Hash]) -> Factory:
    """A hash that needs the name of a delimiter."""

    def read(options: Options) -> Hash:
        if len(options) != 1 or options[0] not in DELIMITERS:
            raise HashingError(f"this hash needs a delimiter: one of -{', -'.join(DELIMITERS)}")
        return make(DELIMITERS[options[0]])

    return read
