"""docs/memcache-commands.md describes the table of commands: the same names, the same classes."""

from __future__ import annotations

import re

from hyper_proxy.build import ROOT
from hyper_proxy.protocol.memcache.commands import COMMANDS
from hyper_proxy.stats.classes import CLASSES


def test_the_page_names_every_command_with_its_class() -> None:
    described = {}
    for line in (ROOT / "docs/memcache-commands.md").read_text().splitlines():
        row = re.fullmatch(r"\| ((?:`\w+` ?)+)\| (\w+) \| .*", line)
        if row:
            described.update(dict.fromkeys(re.findall(r"`(\w+)`", row[1]), row[2]))
    assert described == {name.decode(): CLASSES[command.klass] for name, command in COMMANDS.items()}
