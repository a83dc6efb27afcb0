"""Why a request is not served: a status, a code for programs, a text for people."""

from __future__ import annotations

from hyper_proxy.common.errors import BackendError, ClientError, HyperProxyError
from hyper_proxy.storage.keyvalue import NotANumber, NumberOverflow, TooLong

# What a storage's failure is to an HTTP client; any other kind is a bad gateway.
BACKEND_STATUS = {"timeout": 504, "queue": 503, "busy": 503, "backoff": 503, "closed": 503, "loading": 503}


class Refusal(ClientError):
    """`headers` go into the response; `fatal`: where the next request begins is not known, so the connection ends."""

    def __init__(
        self, status: int, code: str, message: str, *, fatal: bool = False, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(message)
        self.fatal = fatal
        self.status = status
        self.code = code
        self.headers = headers


def refusal_of(error: HyperProxyError) -> Refusal:
    """The same failure in HTTP's terms."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, BackendError):
        return Refusal(BACKEND_STATUS.get(error.kind, 502), f"storage_{error.kind}", str(error))
    if isinstance(error, NotANumber | NumberOverflow):
        return Refusal(409, "not_a_number", str(error))
    if isinstance(error, TooLong):
        return Refusal(413, "value_too_large", str(error))
    return Refusal(400, "bad_request", str(error))
