"""All errors of the proxy, in one tree of four branches; `kind` is the label under which each is counted.

ClientError    the client's fault: carries what to tell it
PolicyDenied   a rule of the configuration forbids it
BackendError   a storage server's fault: names instance, node and what happened
ConfigError    a configuration that cannot be used: lists every finding with file and line
"""

from __future__ import annotations

from dataclasses import dataclass

WHERE_TRACEBACKS_ARE = "on standard error (of a service: in the journal)"


class HyperProxyError(Exception):
    """Root of the tree. word: a closer one than the kind, where there is one, for slow and access log."""

    kind = "internal"
    word = ""


class ClientError(HyperProxyError):
    """A request that cannot be understood or served; the text goes to the client in its own protocol."""

    kind = "client"


class LimitExceeded(ClientError):
    """More than a limit of the instance allows; `limit` is its key in [instance.limits]."""

    def __init__(self, limit: str, text: str) -> None:
        super().__init__(text)
        self.limit = self.word = limit


class SettingRefused(HyperProxyError):
    """A worker can't do what the file says of an instance; `key` is where, below the instance: level[0].route."""

    kind = "setting"

    def __init__(self, instance: str, key: str, text: str) -> None:
        super().__init__(text)
        self.instance = instance
        self.key = key


class PolicyDenied(HyperProxyError):
    """A rule of the configuration forbids the request; the text names the rule and the key that changes it."""

    kind = "denied"


class BackendError(HyperProxyError):
    """A storage server did not answer a request properly.

    kind: refused (no connection), backoff (not tried: it just failed), queue (waited too long before it could be sent),
    timeout (sent, no answer in time), reset (connection lost), protocol (answered nonsense), dns,
    loading (it reads its keys from its disk, and serves nobody),
    drained, maintenance (an operator has taken it out of service), busy (too much is pending), room (its peer serves),
    moving (its keys go to another server just now, and could not be handed over),
    exhausted (no descriptor for a connection), memory (the proxy has none for the reply), late (it is optional, and was
    passed by), unknown (nobody has told where the server is), closed (the proxy itself has ended the connection or the
    storage), plugin (a fault of its code), client (see NoDatabase), internal; of a file also locked, full, broken,
    unwritable, size, io; of a SQL server also these, login (it refused the user), schema (the table is not as
    configured), value (it refused one).
    sent: may the server have done what it was asked? Then only who may repeat the request can ask somebody else.
    untried: was it not asked at all, because it failed a while ago? Then this says nothing about how it is now.
    """

    sent = False
    untried = False

    def __init__(self, instance: str, node: str, kind: str, detail: str) -> None:
        super().__init__(f"instance '{instance}' node '{node}': {detail}")
        self.instance = instance
        self.node = node
        self.kind = kind


class NoDatabase(BackendError):
    """A server is well, but does not take the database that the client has chosen: that is the client's fault.

    said: the server's words, its code included.
    """

    def __init__(self, instance: str, node: str, said: str) -> None:
        super().__init__(instance, node, ClientError.kind, f"it does not take the database of this client: {said}")
        self.said = said


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark about a configuration file; level is "error" or "warning", code is stable (HP101 ...). line 0: it is
    about a file of which no line was read."""

    file: str
    line: int
    level: str
    code: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.level}: {self.code} {self.message}"


class ConfigError(HyperProxyError):
    """A configuration with at least one finding of level error."""

    kind = "config"

    def __init__(self, findings: list[Finding]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings
