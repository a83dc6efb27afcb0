"""The reference part of docs/configuration.md, made from the table of settings and the table of codes.

`python -m hyper_proxy.config.reference docs/configuration.md` writes it into that file between the two marks; a test
compares them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import toml

from hyper_proxy.config.codes import CODES
from hyper_proxy.config.place import REQUIRED
from hyper_proxy.config.setting import ByProtocol, Setting
from hyper_proxy.config.settings import SECTIONS, header_of, keys_of

BEGIN = "<!-- generated: reference -->"
END = "<!-- end of generated: reference -->"


def reference() -> str:
    """Every section with every key, then every code, in Markdown."""
    parts = [_section(section) for section in SECTIONS]
    codes = "\n".join(f"| {code} | {row.level} | {row.help} |" for code, row in CODES.items())
    return "\n\n".join(
        [
            *parts,
            f"### Findings of `check`\n\n| code | level | meaning |\n| --- | --- | --- |\n{codes}",
        ]
    )


def update(page: str) -> str:
    """The page with a fresh reference between its marks; ValueError when it has none."""
    head, mark, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"the page lacks the line {BEGIN} or {END}")
    return f"{head}{BEGIN}\n\n{reference()}\n\n{END}{tail}"


def _section(section: str) -> str:
    rows = [_row(setting) for setting in keys_of(section).values()]
    table = "\n".join(["| key | value | default | meaning |", "| --- | --- | --- | --- |", *rows])
    return f"### `{header_of(section)}`\n\n{SECTIONS[section].help}\n\n{table}"


def _row(setting: Setting) -> str:
    notes = [] if setting.hot else ["takes a restart" if setting.restart else "takes new workers"]
    if setting.only:
        notes.append(f"only for {', '.join(setting.only)}")
    if setting.but:
        notes.append(f"not for {', '.join(setting.but)}")
    text = ". ".join([setting.help[0].upper() + setting.help[1:], *(note.capitalize() for note in notes)])
    cells = (f"`{setting.key}`", setting.kind.accepts, default_text(setting), f"{text}.")
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def default_text(setting: Setting) -> str:
    """A default as it would be written in a file."""
    if setting.default is REQUIRED:
        return "must be given"
    if setting.default is None:
        return "none"
    if isinstance(setting.default, ByProtocol):
        return ", ".join(f"{name}: `{_show(value)}`" for name, value in setting.default.values.items())
    return f"`{_show(setting.default)}`"


def _show(value: object) -> str:
    return str(toml.TomlEncoder().dump_value(value))


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(update(target.read_text("utf-8")), "utf-8")
