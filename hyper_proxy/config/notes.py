"""Collects what is to be said about a configuration file while it is read, so that all of it is said at once."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from hyper_proxy.common.errors import Finding
from hyper_proxy.config.codes import CODES, ERROR

Path = tuple[str | int, ...]
"""Where a value is: ("instance", 0, "level", 1, "servers", 3)."""
NONE: Mapping[str, str] = MappingProxyType({})
LIKENESS = 0.65
"""Of the letters of two words, so many are the same in the same order (difflib): less is another word, not a slip."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class Notes:
    """The findings of one file; `lines` tells the line of a path, `faulty` are those of which something was said.
    `lacks_plugins`: is there one that could not be loaded? Then a name that nobody knows may be one of its own, and is
    not spoken of."""

    def __init__(self, file: str, lines: Mapping[Path, int]) -> None:
        self.file = file
        self.lines = lines
        self.findings: list[Finding] = []
        self.faulty: set[Path] = set()
        self.lacks_plugins = False

    def add(self, path: Path, code: str, message: str) -> None:
        """Records a finding about the value at `path`; one that is about no value has the empty path."""
        where = f"{show_path(path)}: " if path else ""
        finding = Finding(self.file, self.line(path), CODES[code].level, code, f"{where}{message}")
        self.faulty.add(path)
        if finding not in self.findings:
            self.findings.append(finding)

    def line(self, path: Path) -> int:
        """The line of a path, or of the nearest table around it that was written down."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def sorted(self) -> list[Finding]:
        """All findings in the order of the file."""
        return sorted(self.findings, key=lambda finding: (finding.line, finding.code))

    @property
    def failed(self) -> bool:
        """Is there a finding that refuses the file?"""
        return any(finding.level == ERROR for finding in self.findings)


def show_path(path: Path) -> str:
    """A path as people write it: instance[0].level[1].servers[3]; keys in quotes where toml wants them so."""
    text = ""
    for part in path:
        name = part if isinstance(part, int) or _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)
        text += f"[{name}]" if isinstance(name, int) else f".{name}" if text else name
    return text


def no_instance(name: str, names: Collection[str]) -> str:
    """What is said of an instance that is asked for, and is not among those of the configuration."""
    return f"there is no instance '{name}'" + (suggest(name, names) or f"; the configuration has {', '.join(names)}")


def suggest(word: str, known: Iterable[str], others: Mapping[str, str] = NONE) -> str:
    """ "; did you mean 'x'?" for the nearest known word, "" if nothing is near. others: words that are used elsewhere,
    and what they are called here."""
    by_lower = {**others, **{name.lower(): name for name in known}}
    said = word.lower().replace("-", "_")
    swapped = [name for name in by_lower if sorted(name) == sorted(said)]
    near = swapped or difflib.get_close_matches(said, by_lower, n=1, cutoff=LIKENESS)
    return f"; did you mean '{by_lower[near[0]]}'?" if near else ""
