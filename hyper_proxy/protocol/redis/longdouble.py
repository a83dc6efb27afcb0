"""INCRBYFLOAT's arithmetic: x87 extended precision, 64 bits of mantissa, which is redis' `long double` on x86-64.

Python has no such type, so numbers are exact fractions that are rounded to 64 significant bits, ties to even, after
each step, as the processor does. Formats: redis 7.0 util.c, string2ld and ld2string in human form (`%.17Lf` without
trailing zeros).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MANTISSA_BITS = 64
MAX_EXPONENT = 16384  # values of 2**16384 and more are infinite
MIN_EXPONENT = -16445  # 2**-16445 is the smallest number above zero
MAX_TEXT_BYTES = 5 * 1024  # redis' buffer, its NUL included; longer texts are not numbers
ZERO = Fraction(0)
INFINITY = Fraction(2**MAX_EXPONENT)  # stands for the infinite; no finite number reaches it
_EXPONENT_LIMIT = 20_000  # beyond it, with at most MAX_TEXT_BYTES digits, every number is zero or infinite
_CHUNK = 4000  # digits that Python converts in one piece; it refuses more than 4300
_DECIMALS = 17

_INFINITY = re.compile(rb"inf(?:inity)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write a number without sign; the exponent counts powers of `base`, a digit is worth some of them."""

    pattern: re.Pattern[bytes]
    base: int
    power_of_digit: int


_FORMS = (
    _Form(re.compile(rb"(?:([0-9]+)\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?"), 10, 1),
    _Form(re.compile(rb"0[xX](?:([0-9a-fA-F]+)\.?([0-9a-fA-F]*)|\.([0-9a-fA-F]+))(?:[pP]([+-]?[0-9]+))?"), 2, 4),
)


class NotFinite(ArithmeticError):
    """The sum is infinite or not a number."""


def parse(text: bytes) -> Fraction | None:
    """The number nearest to `text`, or None when redis says that it is not a valid float.

    As C's strtold does, it takes decimal and hexadecimal numbers and `inf`, with which the sum then is not finite.
    """
    if len(text) >= MAX_TEXT_BYTES:
        return None
    negative, unsigned = text.startswith(b"-"), text[text[:1] in (b"+", b"-"):]
    if _INFINITY.fullmatch(unsigned):
        return -INFINITY if negative else INFINITY
    for form in _FORMS:
        found = form.pattern.fullmatch(unsigned)
        if found is not None:
            return _parse_digits(form, found, negative)
    return None


def _parse_digits(form: _Form, found: re.Match[bytes], negative: bool) -> Fraction | None:
    whole, decimals, bare, exponent = found.groups(default=b"")
    decimals = decimals or bare
    digits = (whole + decimals).lstrip(b"0")
    if not digits:
        return ZERO
    power = _parse_integer(exponent.lstrip(b"+-")) * (-1 if exponent.startswith(b"-") else 1)
    if abs(power) > _EXPONENT_LIMIT:
        return None
    power -= form.power_of_digit * len(decimals)
    mantissa = int(digits, 16) if form.base == 2 else _parse_integer(digits)
    rounded = round_mantissa((-mantissa if negative else mantissa) * Fraction(form.base) ** power)
    return None if rounded == 0 or abs(rounded) >= INFINITY else rounded


def add(left: Fraction, right: Fraction) -> Fraction:
    """The rounded sum; raises NotFinite when it, or one of the two, is infinite."""
    total = round_mantissa(left + right)
    if max(abs(left), abs(right), abs(total)) >= INFINITY:
        raise NotFinite
    return total


def round_mantissa(exact: Fraction) -> Fraction:
    """The nearest number of 64 significant bits (fewer below 2**-16382), ties to even."""
    if exact == 0:
        return exact
    top = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    if abs(exact) < Fraction(2) ** top:
        top -= 1
    unit = Fraction(2) ** max(top + 1 - MANTISSA_BITS, MIN_EXPONENT)
    return round(exact / unit) * unit


def encode(number: Fraction) -> bytes:
    """At most 17 decimals, no trailing zeros, never an exponent."""
    scaled = round(number * 10**_DECIMALS)
    whole, decimals = divmod(abs(scaled), 10**_DECIMALS)
    text = _encode_integer(whole) + (b".%017d" % decimals).rstrip(b"0").rstrip(b".")
    return b"-" + text if scaled < 0 else text


def _parse_integer(digits: bytes) -> int:
    number = 0
    for start in range(0, len(digits), _CHUNK):
        piece = digits[start:start + _CHUNK]
        number = number * 10 ** len(piece) + int(piece)
    return number


def _encode_integer(number: int) -> bytes:
    high, low = divmod(number, 10**_CHUNK)
    return b"%d" % low if high == 0 else _encode_integer(high) + (b"%d" % low).zfill(_CHUNK)
