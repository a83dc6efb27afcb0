"""How a client's key is named where people look: in logs, lists and pages.

A key may tell about a person, so it is shown by its digest unless the operator asks for more; who knows a key finds its
digest by `hyper-proxy explain`.
"""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 8
SHOWN_CHARACTERS = 64


def digest(key: bytes) -> str:
    """BLAKE2b of 8 bytes in hexadecimal, and the length of the key in bytes: "a7b6eda801e5347d:5"."""
    return f"{blake2b(key, digest_size=DIGEST_BYTES).hexdigest()}:{len(key)}"


def readable(key: bytes) -> str:
    """The key itself, what cannot be printed as \\xNN; of a long one the first 64 characters, "~" and the digest."""
    text = key.decode("ascii", "backslashreplace")
    text = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}~{digest(key)}"
