"""The line of every table, key and array element of a toml text that tomllib has already accepted.

tomllib tells values but not their places. This walks the same text once, knowing only what is needed to find keys:
strings, comments, brackets. Since the text is valid, nothing is checked here. Grammar: toml.io/en/v1.0.0.
"""

from __future__ import annotations

import tomllib

from hyper_proxy.config.notes import Path

_BLANK = " \t"
_VALUE_ENDS = ",]}#\n\r \t"


def find_lines(text: str) -> dict[Path, int]:
    """Maps the path of each table, key and element to the number of its line, counted from 1."""
    walk = _Walk(text.replace("\r\n", "\n"))
    walk.document()
    return walk.lines


class _Walk:
    """A position in the text, the line it is on, and what has been found so far."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = 0
        self.line = 1
        self.lines: dict[Path, int] = {(): 1}
        self.arrays: dict[Path, int] = {}

    def here(self) -> int:
        """The line of the present position."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def document(self) -> None:
        """Table headers and key-value lines to the end."""
        table: Path = ()
        while self.skip(newlines=True):
            if self.text.startswith("[", self.at):
                table = self.header()
            else:
                self.pair(table)

    def skip(self, *, newlines: bool) -> bool:
        """Moves over blanks, comments and, if wanted, line ends; False at the end of the text."""
        blank = _BLANK + "\n" if newlines else _BLANK
        while self.at < len(self.text):
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif self.text[self.at] in blank:
                self.at += 1
            else:
                return True
        return False

    def header(self) -> Path:
        """[a.b] or [[a.b]]; the part that is an array of tables gets the index of its newest element."""
        line = self.here()
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        parts = self.key()
        self.at += 2 if array else 1
        path: Path = ()
        for part in parts[:-1]:
            path = self.newest((*path, part))
        path = (*path, parts[-1])
        if array:
            self.arrays[path] = self.arrays.get(path, -1) + 1
            self.lines.setdefault(path, line)
        path = self.newest(path)
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)
        # A table that was only implied by a longer header gets its own line when its own header comes.
        self.lines[path] = line
        return path

    def newest(self, path: Path) -> Path:
        """The path itself, or that of the last element if it is an array of tables."""
        return (*path, self.arrays[path]) if path in self.arrays else path

    def key(self) -> list[str]:
        """A bare, quoted or dotted key; leaves the position behind it."""
        parts = []
        while True:
            self.skip(newlines=False)
            start = self.at
            if self.text[self.at] in "\"'":
                self.string()
                parts.append(str(tomllib.loads(f"k = {self.text[start : self.at]}")["k"]))
            else:
                while self.text[self.at].isalnum() or self.text[self.at] in "_-":
                    self.at += 1
                parts.append(self.text[start : self.at])
            self.skip(newlines=False)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def pair(self, table: Path) -> None:
        """key = value"""
        line = self.here()
        path = table
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.at += 1
        self.skip(newlines=False)
        self.value(path)

    def value(self, path: Path) -> None:
        """One value of any kind; arrays and inline tables add the lines of their parts."""
        first = self.text[self.at]
        if first in "\"'":
            self.string()
        elif first == "[":
            self.array(path)
        elif first == "{":
            self.inline(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in _VALUE_ENDS:
                self.at += 1

    def string(self) -> None:
        """Moves over a string of any of the four kinds."""
        quote = self.text[self.at]
        end = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(end)
        while not self.text.startswith(end, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(end)
        # Up to two quotes may stand directly before the three that close a long string.
        while len(end) == 3 and self.text.startswith(quote, self.at):
            self.at += 1

    def array(self, path: Path) -> None:
        """[a, b, ...], over any number of lines."""
        self.at += 1
        index = 0
        while self.skip(newlines=True) and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.lines[(*path, index)] = self.here()
            self.value((*path, index))
            index += 1
        self.at += 1

    def inline(self, path: Path) -> None:
        """{a = 1, b.c = 2}"""
        self.at += 1
        while self.skip(newlines=True) and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self.pair(path)
        self.at += 1
