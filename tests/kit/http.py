"""What an HTTP server has answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, whole; the names of its headers in small letters."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as data."""
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error."""
        return str(self.json["error"]["code"])


def ask(
    connection: HTTPConnection, method: str, path: str, body: bytes | str | None, headers: dict[str, str]
) -> Answer:
    """One request; `_` in the name of a header stands for `-`."""
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
