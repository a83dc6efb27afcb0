"""The laws of the layout: who may import whom, how long files and functions may be, and what is nowhere done."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from hyper_proxy.build import PACKAGES, ROOT

MAX_FILE_LINES = 450
MAX_FUNCTION_LINES = 60

# The layers, top to bottom; a folder imports those below it and those beside, never one above.
LAYERS = ("entry", "protocol", "tenant", "hashing", "tunnel", "storage", "conn_pool")
BESIDE = ("common", "stats", "config")
MASTER_MAY_IMPORT = frozenset(f"hyper_proxy.{folder}" for folder in BESIDE)
# What puts the layers together stands above them all.
TOP = {"cli", *(path.stem for path in (ROOT / "hyper_proxy").glob("*.py"))} - {"__init__", "build", "plain"}

Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True, slots=True)
class Import:
    """One import: the absolute name of the module, or of the thing in it."""

    path: Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line} imports {self.name}"


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


CODE = sources(*PACKAGES)
TESTS = sources("tests")
EXAMPLES = sources("etc")
ALL = [*CODE, *TESTS, *EXAMPLES, *sources("scripts")]
TREES = {path: ast.parse(path.read_text()) for path in ALL}


def imports(paths: list[Path]) -> Iterator[Import]:
    """Those inside functions too; `from a import b` counts as a.b. What is for type checkers only does not run."""
    for path in paths:
        blocks = [node for node in ast.walk(TREES[path]) if is_type_checking(node)]
        typing_only = {id(node) for block in blocks for node in ast.walk(block)}
        for node in ast.walk(TREES[path]):
            if id(node) in typing_only:
                continue
            if isinstance(node, ast.Import):
                yield from (Import(path, node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                yield from (Import(path, node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def folder_of(name: str) -> str:
    """Of hyper_proxy.FOLDER.anything; empty for other names."""
    parts = name.split(".")
    return parts[1] if parts[0] == "hyper_proxy" and len(parts) > 1 else ""


def report(violations: list[str]) -> None:
    assert not violations, "\n" + "\n".join(violations)


def test_a_layer_imports_only_lower_layers_and_those_beside() -> None:
    violations = []
    for number, layer in enumerate(LAYERS):
        above = {*LAYERS[:number], *TOP}
        violations += [str(one) for one in imports(sources(f"hyper_proxy/{layer}")) if folder_of(one.name) in above]
    report(violations)


@pytest.mark.parametrize("folder", BESIDE)
def test_what_is_beside_imports_no_layer(folder: str) -> None:
    forbidden = {*LAYERS, *TOP, *(() if folder != "common" else ("stats", "config"))}
    report([str(one) for one in imports(sources(f"hyper_proxy/{folder}")) if folder_of(one.name) in forbidden])


def test_importing_the_configuration_loads_no_layer() -> None:
    """The layers are asked what exists only while a file is checked, which the master has a child do."""
    script = "import sys, hyper_proxy.config.load; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    report([name for name in loaded.stdout.split() if folder_of(name) in LAYERS])


def test_a_plug_in_needs_one_module_of_the_proxy() -> None:
    """What the examples need is what is offered to everybody; all else may change."""
    ours = [one for one in imports(EXAMPLES) if one.name.split(".")[0] in PACKAGES]
    assert ours
    report([str(one) for one in ours if one.name != "hyper_proxy.plugin"])


def test_only_plug_ins_import_what_is_made_for_them() -> None:
    """What is built in stands in the tables by itself."""
    report([str(one) for one in imports(CODE) if f"{one.name}.".startswith("hyper_proxy.plugin.")])


def test_the_master_imports_only_config_common_and_stats() -> None:
    violations = []
    for one in imports(sources("supervisor")):
        package = ".".join(one.name.split(".")[:2])
        if folder_of(one.name) and package not in MASTER_MAY_IMPORT and one.name != "hyper_proxy.__version__":
            violations.append(str(one))
    report(violations)


def test_the_proxy_does_not_import_its_processes_but_for_its_command() -> None:
    below = [path for path in sources("hyper_proxy") if path.parent != ROOT / "hyper_proxy/cli"]
    report([str(one) for one in imports(below) if one.name.split(".")[0] in ("workers", "supervisor")])


def test_the_master_never_loads_gevent() -> None:
    """Neither by itself nor by what it imports: a hub that is forked with the master's loop serves nobody."""
    script = "import sys, supervisor.start; sys.exit('gevent' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nobody_kills_a_greenlet_by_timeout() -> None:
    used = [str(one) for one in imports(CODE) if one.name in ("gevent.Timeout", "gevent.timeout.Timeout")]
    used += [f"{path.relative_to(ROOT)} uses gevent.Timeout" for path in CODE if "gevent.Timeout" in path.read_text()]
    report(used)


def test_files_end_before_they_tire() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in ALL}
    report([f"{path.relative_to(ROOT)}: {lines} lines" for path, lines in lengths.items() if lines > MAX_FILE_LINES])


def test_functions_fit_a_screen() -> None:
    violations = []
    for path, node in nodes(ALL, ast.FunctionDef):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > MAX_FUNCTION_LINES:
            violations.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {lines} lines")
    report(violations)


def nodes(paths: list[Path], kind: type[Node]) -> Iterator[tuple[Path, Node]]:
    for path in paths:
        for node in ast.walk(TREES[path]):
            if isinstance(node, kind):
                yield path, node


def test_every_folder_says_what_it_is_for() -> None:
    folders = {path.parent for path in CODE}
    silent = [folder for folder in folders if not (folder / "__init__.py").exists()]
    silent += [path.parent for path in CODE if path.name == "__init__.py" and not ast.get_docstring(TREES[path])]
    report([str(folder.relative_to(ROOT)) for folder in silent])


def test_every_file_says_what_it_is_for() -> None:
    report([str(path.relative_to(ROOT)) for path in ALL if not ast.get_docstring(TREES[path])])


def test_no_error_is_caught_that_nobody_expected() -> None:
    """`except Exception` hides faults; where one really must go on, `# noqa: BLE001` and a reason stand on the line."""
    violations = []
    for path, node in nodes(ALL, ast.ExceptHandler):
        broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        again = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
        line = path.read_text().splitlines()[node.lineno - 1]
        if broad and not again and not re.search(r"# noqa: BLE001  \S", line):
            violations.append(f"{path.relative_to(ROOT)}:{node.lineno} {line.strip()}")
    report(violations)


def test_tests_wait_for_something_and_never_just_sleep() -> None:
    violations = []
    for path, node in nodes([path for path in TESTS if path.name.startswith("test_")], ast.Call):
        if ast.unparse(node.func) in ("time.sleep", "sleep", "gevent.sleep"):
            violations.append(f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}")
    report(violations)


SKIPS = {f"pytest.{name}" for name in ("skip", "mark.skip", "mark.skipif", "xfail", "mark.xfail", "importorskip")}


def test_no_test_is_skipped() -> None:
    violations = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path, node in nodes(TESTS, ast.Attribute)
        if ast.unparse(node) in SKIPS
    ]
    report(violations)


def test_nothing_is_left_for_later() -> None:
    words = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
    violations = []
    for path in ALL:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if words.search(line):
                violations.append(f"{path.relative_to(ROOT)}:{number} {line.strip()}")
    report(violations)
