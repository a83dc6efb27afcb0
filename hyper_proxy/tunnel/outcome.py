# cython: language_level=3, annotation_typing=False
"""What became of each key of a read: a server that fails costs its own keys only, at whatever level it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hyper_proxy.common.errors import BackendError
from hyper_proxy.storage.keyvalue import Item, Partial


@dataclass(frozen=True, slots=True)
class Failed:
    """In the place of an item: why nobody knows it."""

    error: BackendError


Told = Item | Failed | None


def attempt(read: Callable[[Sequence[bytes]], list[Item | None]], keys: Sequence[bytes]) -> list[Told]:
    """What became of each key."""
    try:
        return list(read(keys))
    except Partial as partial:
        told = [partial.found[key] for key in keys]
        return [Failed(one) if isinstance(one, BackendError) else one for one in told]
    except BackendError as error:
        return [Failed(error)] * len(keys)


def whole(keys: Sequence[bytes], found: Sequence[Told]) -> list[Item | None]:
    """The items. Raises the error when it is one for all of the keys, else Partial."""
    items: list[Item | None] = []
    errors: dict[bytes, BackendError] = {}
    for key, one in zip(keys, found, strict=True):
        if isinstance(one, Failed):
            errors[key] = one.error
            items.append(None)
        else:
            items.append(one)
    if not errors:
        return items
    if len(errors) == len(set(keys)) and len(set(errors.values())) == 1:
        raise next(iter(errors.values()))
    raise Partial({key: errors.get(key, item) for key, item in zip(keys, items, strict=True)})
