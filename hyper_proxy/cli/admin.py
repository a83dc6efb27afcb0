"""The sidecar of a running fleet, as the command line asks it: which fleet, with what token, one request at a time."""

from __future__ import annotations

import argparse
import getpass
import http.client
import json
import os
import socket
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from hyper_proxy.common.errors import HyperProxyError
from hyper_proxy.config.addresses import read_listen
from hyper_proxy.config.load import inspect_text, read_text

DEFAULT_ADMIN = "127.0.0.1:22122"
# Longer than the sidecar's own patience with a reload, so that its answer is what ends the wait.
TIMEOUT_S = 65.0
TOKEN_VARIABLE = "HYPER_PROXY_TOKEN"

_INSTEAD = f"use --admin HOST:PORT ({DEFAULT_ADMIN}, if the file named none), or HUP"

Answer = dict[str, Any]


class Unreachable(HyperProxyError):
    """The sidecar can't be asked."""

    kind = "unreachable"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[-c FILE | --admin ADDRESS]"""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-c", "--config", metavar="FILE", help="the fleet of this file, at its [admin] listen; no other")
    which.add_argument(
        "--admin", metavar="ADDRESS", type=_address,
        help=f"whichever fleet answers there: HOST:PORT or unix:PATH ({DEFAULT_ADMIN})",
    )  # fmt: skip


def seconds(least: float, most: float = 3600) -> Callable[[str], float]:
    """For an argument: the number of seconds in its text, which is within these."""

    def read(text: str) -> float:
        with suppress(ValueError):
            if least <= float(text) <= most:
                return float(text)
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least:g} to {most:g}")

    return read


def _address(text: str) -> str:
    port = text.removeprefix(":")
    if port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} has no address: write 127.0.0.1:{port}")
    try:
        return read_listen(text).address
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Admin:
    """The address of a sidecar, the token for orders, and the file of the fleet that must answer there ("": any)."""

    address: str
    token: str = ""
    file: str = ""

    def ask(
        self, method: str, path: str, fields: Mapping[str, object] | None = None, timeout_s: float = TIMEOUT_S
    ) -> tuple[int, Answer]:
        """Status and JSON body of one request; the fields go into the query of a GET, else into the body.

        Raises Unreachable.
        """
        headers = {"User-Agent": f"hyper-proxy ctl ({_user()})"}
        body = None
        if method == "GET":
            path += f"?{urlencode(fields)}" if fields else ""
        else:
            body = json.dumps(fields or {})
            headers["Content-Type"] = "application/json"
            if self.token:
                headers["Authorization"] = f"Bearer {self.token}"
        connection = _connection(self.address, timeout_s)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            answer = _of_a_sidecar(json.loads(response.read()))
        except PermissionError as error:
            raise Unreachable(f"{self.address}: {error.strerror}: be the user of the fleet, or root") from error
        except (ConnectionRefusedError, FileNotFoundError) as error:
            why = f"no fleet answers on {self._asked}: {error.strerror}"
            raise Unreachable(why + self._moved) from error
        except OSError as error:
            raise Unreachable(f"the fleet does not answer on {self._asked}: {error.strerror or error}") from error
        except (http.client.HTTPException, ValueError) as error:
            other = f"what answers on {self._asked} is no sidecar of a fleet, which has the address of [admin] listen"
            raise Unreachable(other) from error
        finally:
            connection.close()
        return response.status, answer

    def expect_fleet(self) -> None:
        """Raises Unreachable when the fleet of another file answers."""
        if not self.file:
            return
        answer = self.ask("GET", "/health/live")[1]
        if "fleet" not in answer:
            raise Unreachable(f"{self.address}: {answer['error']}")
        fleet = answer["fleet"]
        if os.path.realpath(fleet["file"]) != os.path.realpath(self.file):
            other = f"the fleet of {fleet_name(fleet)} answers there"
            raise Unreachable(f"{self.address} is [admin] listen of {self.file}, but {other}{self._moved}")

    @property
    def _asked(self) -> str:
        """With the key that says so, where a file does."""
        return f"{self.address} ([admin] listen)" if self.file else self.address

    @property
    def _moved(self) -> str:
        """What else may be the reason: a fleet answers where the file said when it was read, and nowhere else."""
        if not self.file:
            return ""
        return f"\nif {self.file} said another [admin] listen when the fleet read it: --admin OLD, or HUP to its master"


def find_admin(arguments: argparse.Namespace) -> Admin:
    """The sidecar that the arguments name.

    Of a file only its [admin] is read, whatever else is wrong with it: to hear that is what a reload may be for. Raises
    ConfigError when the file can't be read, Unreachable when it names no address.
    """
    token = os.environ.get(TOKEN_VARIABLE, "")
    if arguments.config is None:
        return Admin(arguments.admin or DEFAULT_ADMIN, token)
    path = arguments.config
    text = read_text(path)
    try:
        table = tomllib.loads(text).get("admin", {})
        address = read_listen(table.get("listen", DEFAULT_ADMIN)).address
        return Admin(address, token or str(table.get("token", "")), path)
    except (ValueError, AttributeError, TypeError, RecursionError) as error:  # no toml, no address; no table, no string
        findings = map(str, inspect_text(text, path)[1])
        raise Unreachable("\n".join(["[admin] listen can't be read:", *findings, _INSTEAD])) from error


def _of_a_sidecar(answer: Any) -> Answer:
    """Raises ValueError when this can't be one of its answers: each names the fleet, or is but an error in words."""
    if not isinstance(answer, dict) or ("fleet" not in answer and not isinstance(answer.get("error"), str)):
        raise ValueError(answer)
    return answer


def fleet_name(fleet: Mapping[str, Any]) -> str:
    """Which fleet has answered, in words."""
    return f"{fleet['file'] or 'the embedded default'} (master {fleet['master']})"


def _user() -> str:
    """Who asks, for the fleet's log: what the system calls this user, in letters that fit into a header."""
    try:
        return getpass.getuser().encode("ascii", "replace").decode()
    except (KeyError, OSError):  # a container may have no name for it
        return f"uid {os.getuid()}"


def _connection(address: str, timeout_s: float) -> http.client.HTTPConnection:
    if address.startswith("unix:"):
        return _UnixConnection(address.removeprefix("unix:"), timeout_s)
    return http.client.HTTPConnection(address, timeout=timeout_s)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
