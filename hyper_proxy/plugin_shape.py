"""Has what a plug-in registers the form in which it will be called? Asked when it is registered, so that `check` tells
what no request has met yet."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from hyper_proxy.common.plugin_error import Owner, PluginError, place_of_function, shown

OPTIONAL = ("opened", "sizes", "encode", "release", "put_many_if_absent", "delete_many", "expire_many")
"""What a class may have besides what it must have, and what is called as its base class has it."""


def check_class(owner: Owner, what: str, made: object, base: type, asked: Sequence[str]) -> None:
    """Raises PluginError for a class that is not whole, or one of whose functions cannot be called as it will be;
    asked: the names of what it is made of."""
    if not isinstance(made, type) or not issubclass(made, base):
        raise PluginError(owner, what, f"it is no subclass of plugin.{base.__name__}")
    lacking = sorted(getattr(made, "__abstractmethods__", ()))
    if lacking:
        raise PluginError(owner, what, f"it lacks {', '.join(lacking)}")
    _check_call(owner, f"{what}: __init__", made, asked)
    for name in (*sorted(getattr(base, "__abstractmethods__", ())), *OPTIONAL):
        own = getattr(made, name, None)
        if own is None or own is getattr(base, name, None):
            continue
        kept = inspect.getattr_static(made, name)
        gets_self = hasattr(type(kept), "__get__") and not isinstance(kept, staticmethod | classmethod)
        wanted = list(inspect.signature(getattr(base, name)).parameters)[not gets_self :]
        check_function(owner, f"{what}: {name}", own, wanted)


def check_function(owner: Owner, what: str, function: object, asked: Sequence[str]) -> None:
    """Raises PluginError when it is no function, or can't be called with the values of these names."""
    if not callable(function):
        raise PluginError(owner, what, f"a function is wanted, not {shown(function)}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise PluginError(owner, what, "it is called as a plain function: write it without `async`",
                          place_of_function(function, owner))  # fmt: skip
    _check_call(owner, what, function, asked)


def _check_call(owner: Owner, what: str, function: object, asked: Sequence[str]) -> None:
    assert callable(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # one in C may not say
    try:
        signature.bind(*asked)
    except TypeError as error:
        own = place_of_function(function, owner)
        values = [name for name in asked if name != "self"]
        reason = f"it is called with ({', '.join(values)}), which it does not take: {error}"
        raise PluginError(owner, what, reason, "" if own == owner.origin else own) from None
