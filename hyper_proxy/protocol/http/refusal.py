"""Why a request is not served: a status, a code for programs, a text for people."""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError, ClientError, HyperProxyError, LimitExceeded
from hyper_proxy.storage.keyvalue import NotANumber, NumberOverflow

# What a storage's failure is to an HTTP client; any other kind is a bad gateway.
BACKEND_STATUS = {
    "timeout": 504, "queue": 503, "busy": 503, "backoff": 503, "closed": 503, "loading": 503, "memory": 503,
}  # fmt: skip

SHOWN = 40  # characters of a name that is not known

# What a request beyond a limit of the instance is told.
LIMITS = {
    "max_clients": (503, "too_many_clients"),
    "max_key_bytes": (400, "key_too_long"),
    "max_value_bytes": (413, "value_too_large"),
    "max_arguments": (400, "too_many_keys"),
    "max_request_bytes": (413, "request_too_large"),
}


class Refusal(ClientError):
    """`headers` go into the response. `word`: the code, for programs."""

    def __init__(self, status: int, code: str, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.word = code
        self.headers = headers


def refusal_of(error: HyperProxyError) -> Refusal:
    """The same failure in HTTP's terms."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, LimitExceeded):
        return Refusal(*LIMITS[error.limit], str(error))
    if isinstance(error, BackendError):
        return Refusal(BACKEND_STATUS.get(error.kind, 502), f"storage_{error.kind}", str(error))
    if isinstance(error, NotANumber | NumberOverflow):
        return Refusal(409, "not_a_number", str(error))
    return Refusal(400, "bad_request", str(error))
