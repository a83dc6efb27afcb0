"""What several edits of one key come to: for storages that write a key once."""

from __future__ import annotations

from collections.abc import Sequence

from hyper_proxy.storage.keyvalue import Edit, Expire, Put, Remove


def last_edits(keys: Sequence[bytes], edits: Sequence[Edit]) -> dict[bytes, Edit]:
    """What becomes of each key in the end, when the edits (one a key, in order) are carried out one after the other."""
    last: dict[bytes, Edit] = {}
    for key, edit in zip(keys, edits, strict=True):
        before = last.setdefault(key, None)
        if isinstance(edit, Expire) and isinstance(before, Put):
            last[key] = Put(before.value, before.flags, edit.expires_at)
        elif edit is not None and not (isinstance(edit, Expire) and isinstance(before, Remove)):
            last[key] = edit
    return last
