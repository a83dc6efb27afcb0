"""What becomes of a request of a plug-in's protocol: the plug-in finds the keys, the placement finds their places."""

from __future__ import annotations

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.common.plugin_error import Owner, PluginError, guarded, nonsense, place_of_function, shown
from hyper_proxy.config.model import Instance
from hyper_proxy.protocol.explanation import BadQuestion, Explanation, Facts, Ground, Key, Outcome
from hyper_proxy.protocol.functions.found import fault_of
from hyper_proxy.protocol.functions.protocol import Client, Partly, Protocol, Request
from hyper_proxy.stats.classes import CLASSES, READ


def explain(protocol: Protocol, owner: Owner, instance: Instance, words: list[bytes]) -> Explanation:
    """Raises BadQuestion for what the plug-in does not take for one whole request."""
    try:
        one = guarded(owner, "opened", protocol.opened, Client("explain", instance))
        if not isinstance(one, Protocol):
            raise nonsense(owner, "opened", protocol.opened, "a Protocol", one)
        request = _read(one, owner, words)
        parts = guarded(owner, "split", one.split, request)
        if not isinstance(parts, list | tuple):
            raise nonsense(owner, "split", one.split, "a list", parts)
    except PluginError as error:
        raise BadQuestion(error.in_full) from error
    except HyperProxyError as error:
        raise BadQuestion(str(error)) from error
    ground = Ground(instance, request.klass == READ)
    keys = tuple(Key(key, ground.places(key, sent=key)) for key in request.keys)
    way = f"plug-in '{owner.name}' makes {len(parts)} part{'s' if len(parts) != 1 else ''} of it; {ground.own_way}"
    facts = Facts(request.command, CLASSES[request.klass], "plug-in", owner.name)
    return Explanation(instance, tuple(words), facts, keys, Outcome(way))


def _read(protocol: Protocol, owner: Owner, words: list[bytes]) -> Request:
    data = guarded(owner, "encode", protocol.encode, words)
    if not isinstance(data, bytes):
        raise nonsense(owner, "encode", protocol.encode, "bytes", data)
    found: object = guarded(owner, "unserialize", protocol.unserialize, data, 0)
    request, end = found if isinstance(found, tuple | list) and len(found) == 2 else (None, None)
    if isinstance(request, Request) and end == len(data):
        return request
    is_followed = isinstance(request, Request) and isinstance(end, int) and 0 < end < len(data)
    is_begun = found is None or isinstance(found, Partly) or (isinstance(found, int) and found > 0)
    if not is_followed and not is_begun:
        reason, at = fault_of(found, 0, len(data)), place_of_function(protocol.unserialize, owner)
        raise PluginError(owner, "unserialize", reason, at)
    made = f"`encode` of plug-in '{owner.name}' ({place_of_function(protocol.encode, owner)}) makes"
    if type(protocol).encode is Protocol.encode:
        made = f"plug-in '{owner.name}' has no `encode`, which makes a request of words; without one it is"
    raise BadQuestion(f"{made} {shown(data)}, which its `unserialize` does not take for one whole request")
