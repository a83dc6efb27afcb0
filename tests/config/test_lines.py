"""Every table, key and element of a toml text has the line on which it begins."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyper_proxy.config.lines import find_lines
from hyper_proxy.config.notes import Path

CASES: dict[str, tuple[str, dict[Path, int]]] = {
    "nothing": ("", {(): 1}),
    "plain keys": ("a = 1\n\nb = 'x'\n", {("a",): 1, ("b",): 3}),
    "no newline at the end": ("a = 1\nb = 2", {("b",): 2}),
    "comments": ("# a = 1\na = 1 # b = 2\n# c\nb = 2\n", {("a",): 2, ("b",): 4}),
    "windows line ends": ("a = 1\r\nb = [\r\n 1,\r\n 2]\r\nc = 3\r\n", {("b", 1): 4, ("c",): 5}),
    "tables": ("[a]\nx = 1\n[a.b]\ny = 2\n", {("a",): 1, ("a", "x"): 2, ("a", "b"): 3, ("a", "b", "y"): 4}),
    "a table after its part": ("[a.b]\ny = 2\n[a]\nx = 1\n", {("a", "b"): 1, ("a",): 3, ("a", "x"): 4}),
    "dotted keys": ("a.b.c = 1\na.b.d = 2\n", {("a", "b", "c"): 1, ("a", "b"): 1, ("a", "b", "d"): 2}),
    "quoted keys": ('"a b".\'c.d\' = 1\n"\\u0041" = 2\n', {("a b", "c.d"): 1, ("A",): 2}),
    "spaces around dots": ("[ a . b ]\nc . d = 1\n", {("a", "b"): 1, ("a", "b", "c", "d"): 2}),
    "arrays of tables": (
        "[[i]]\nn = 1\n[[i.l]]\ns = 1\n[i.l.t]\nx = 1\n[[i.l]]\ns = 2\n[[i]]\nn = 2\n[i.w]\nx = 1\n[[i.l]]\ns = 3\n",
        {
            ("i", 0): 1, ("i", 0, "n"): 2, ("i", 0, "l", 0): 3, ("i", 0, "l", 0, "t", "x"): 6, ("i", 0, "l", 1): 7,
            ("i", 0, "l", 1, "s"): 8, ("i", 1): 9, ("i", 1, "n"): 10, ("i", 1, "w", "x"): 12, ("i", 1, "l", 0, "s"): 14,
        },
    ),
    "arrays over lines": (
        'a = [ # one\n  "x", # "y",\n  "]",\n\n  [1,\n 2], ]\nb = 1\n',
        {("a", 0): 2, ("a", 1): 3, ("a", 2): 5, ("a", 2, 0): 5, ("a", 2, 1): 6, ("b",): 7},
    ),
    "inline tables": (
        "a = { x = 1, y.z = [1, 2], w = { v = '}' } }\nb = 1\n",
        {("a", "x"): 1, ("a", "y", "z", 1): 1, ("a", "w", "v"): 1, ("b",): 2},
    ),
    "inline tables in an array": (
        "a = [\n {x = 1},\n {x = 2, y = [\n 3\n]}]\n",
        {("a", 0, "x"): 2, ("a", 1, "y", 0): 4},
    ),
    "long strings": ('a = """\n[x]\n\\""" y = 1\n"""\nb = 1\n', {("a",): 1, ("b",): 5}),
    "long strings that end in quotes": ('a = """x"""""\nb = \'\'\'\n"\'\'\'\'\'\nc = 1\n', {("b",): 2, ("c",): 4}),
    "strings with escapes": ('a = "\\\\"\nb = "\\"#"\nc = \'\\\'\nd = 1\n', {("b",): 2, ("c",): 3, ("d",): 4}),
    "dates and numbers": ("a = 1979-05-27T07:32:00Z\nb = -inf\nc = 0x_F\n".replace("_", ""), {("b",): 2, ("c",): 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_lines_of_everything(name: str) -> None:
    text, expected = CASES[name]
    tomllib.loads(text)
    lines = find_lines(text)
    assert {path: lines.get(path) for path in expected} == expected


def _write(value: object, path: Path, out: list[str], lines: dict[Path, int]) -> None:
    """Appends a value to the text, breaking lines inside arrays, and notes where its parts begin."""
    if isinstance(value, list):
        out.append("[")
        for index, part in enumerate(value):
            out.append("\n # [ { \" '\n" if index % 2 else " ")
            lines[(*path, index)] = "".join(out).count("\n") + 1
            _write(part, (*path, index), out, lines)
            out.append(",")
        out.append("]")
    elif isinstance(value, dict):
        out.append("{")
        for index, (key, part) in enumerate(value.items()):
            out.append(", " if index else " ")
            lines[(*path, key)] = "".join(out).count("\n") + 1
            out.append(f'"{key}" = ')
            _write(part, (*path, key), out, lines)
        out.append("}")
    elif isinstance(value, str):
        out.append(f'"""{value}"""' if len(value) % 2 else f"'{value}'")
    else:
        out.append(str(value))


_KEYS = st.text("abc]#[{}=.", min_size=1, max_size=4)
_VALUES = st.recursive(
    st.integers(0, 99) | st.text("ab#[]{}=, ", max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=5))
def test_lines_of_any_document(document: dict[str, object]) -> None:
    out: list[str] = []
    lines: dict[Path, int] = {}
    for key, value in document.items():
        lines[(key,)] = "".join(out).count("\n") + 1
        out.append(f'"{key}" = ')
        _write(value, (key,), out, lines)
        out.append("\n")
    text = "".join(out)
    assert tomllib.loads(text) == document
    found = find_lines(text)
    assert {path: found.get(path) for path in lines} == lines
