"""Requests that are not all there: what a plug-in says of them is bounded by the limits of the instance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.ports import free_port
from tests.plugins.conftest import Start
from tests.plugins.lines import Lines
from tests.plugins.texts import config, instance

SLOWLY = """
from hyper_proxy import plugin


@plugin.protocol("slowly")
class Slowly(plugin.Protocol):
    begun = False

    def opened(self, client):
        return Slowly()

    def unserialize(self, buffer, start):
        end = buffer.find(b"\\n", start) + 1
        if not end:
            return None
        word, _, number = buffer[start:end].partition(b" ")
        if word == b"size":
            return int(number)
        if word == b"lacks":
            return plugin.Partly(start, lacks={b"none\\n": None}.get(number) or int(number))
        if word == b"half" and not self.begun:
            self.begun = True
            return plugin.Partly(end)
        return plugin.Request("any"), end

    def split(self, request):
        return []

    def map(self, storage, part):
        return None

    def reduce(self, request, results):
        return b"ok"

    def serialize(self, reply):
        return reply + b"\\n"

    def refuse(self, error):
        return f"! {error.kind}: {error}\\n".encode()
"""
LIMIT = 65536
TOO_LONG = b"! client: the request is longer than limits.max_request_bytes (%d)\n" % LIMIT


def served(start: Start, folder: Path) -> int:
    """The port of an instance of that protocol."""
    (folder / "slowly.py").write_text(SLOWLY)
    port = free_port()
    start(config(["slowly.py"], instance("slowly", port, limits='max_request_bytes = "64KB"')))
    return port


@pytest.mark.parametrize("said", [b"size", b"lacks"])
def test_a_size_may_be_beyond_every_number(start: Start, folder: Path, said: bytes) -> None:
    with Lines(served(start, folder)) as client:
        line = b"%b %d\n" % (said, 10**30)
        assert client.ask(b"any\n" + line) == [b"ok"]
        client.send(b"x" * (LIMIT + 1 - len(line)))
        assert client.read_to_end() == TOO_LONG


@pytest.mark.parametrize("number", [b"-1", b"none"])
def test_what_lacks_is_a_number_of_bytes(start: Start, folder: Path, number: bytes) -> None:
    with Lines(served(start, folder)) as client:
        assert client.ask(b"any\nlacks %b\n" % number) == [b"ok"]
        assert client.read_to_end() == b"! plugin: plug-in 'slowly.py' failed in unserialize\n"


def test_what_is_taken_and_what_is_not_yet_are_one_request(start: Start, folder: Path) -> None:
    port = served(start, folder)
    with Lines(port) as client:
        client.send(b"half " + b"x" * 40_000 + b"\n")
        assert client.ask(b"y" * 20_000 + b"\n" + b"any\n" * 20_000, lines=2) == [b"ok", b"ok"]
        assert client.lines(19_999) == [b"ok"] * 19_999
    with Lines(port) as client:
        line = b"half " + b"x" * 40_000 + b"\n"
        client.send(line + b"y" * (LIMIT + 1 - len(line)))
        assert client.read_to_end() == TOO_LONG
