"""How a client's key is named where people look: in logs, lists and pages.

A key may tell about a person, so it is shown by its digest unless the operator asks for more; who knows a key finds its
digest by `hyper-proxy explain`.
"""

from __future__ import annotations

from hyper_proxy.common.xxh64 import xxh64

SHOWN_CHARACTERS = 64


def digest(key: bytes) -> str:
    """XXH64 in hexadecimal, as its tool xxhsum shows it, and the length of the key in bytes: "26c7827d889f6da3:5".

    It is made for every line of a full access log; a cryptographic digest, without a secret, would keep a key that can
    be guessed no better.
    """
    return f"{xxh64(key, 0, len(key), 0):016x}:{len(key)}"


def readable(key: bytes) -> str:
    """The key itself, what cannot be printed as \\xNN; of a long one the first 64 characters, "~" and the digest."""
    text = key.decode("ascii", "backslashreplace")
    text = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}~{digest(key)}"
