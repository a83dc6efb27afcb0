"""README, ARCHITECTURE and the pages in docs name only what is there."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from hyper_proxy import hashing
from hyper_proxy.build import PACKAGES, ROOT
from hyper_proxy.cli.demo import WELCOME
from hyper_proxy.cli.main import VERBS
from hyper_proxy.common.errors import PolicyDenied
from hyper_proxy.config.load import load_text
from hyper_proxy.protocol.memcache.wording import NO_RESIZE
from hyper_proxy.tenant.policy import check_allowed

PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = (*PACKAGES, "tests", "scripts", "etc", "docs", ".ci")
# A path of the repository as it stands in a text: from one of its folders on, not behind another path.
PATH = re.compile(rf"(?<![\w/.-])((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*[\w/]|[A-Z]+\.md)")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
# What stands in backquotes, alone.
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")
SHOP = """
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:6380"]
  [[instance.level]]
  storage = "redis"
  servers = ["127.0.0.1:6381"]
"""
CODE_NAMED = {"ARCHITECTURE.md", "adding.md"}
# What is made while the project runs, or stands for something that the reader adds.
EXAMPLES = {"hyper_proxy/hashing/functions/djb2.py"}


def named_paths(text: str) -> set[str]:
    return set(PATH.findall(text)) - EXAMPLES


def names_of_the_code() -> set[str]:
    """Modules, classes, functions, Class.function, and whatever is assigned at the top of a module or in a class."""
    found: set[str] = set()
    for folder in PACKAGES:
        for path in (ROOT / folder).rglob("*.py"):
            found.add(".".join(path.relative_to(ROOT).with_suffix("").parts))
            found |= names_in(ast.parse(path.read_text()))
    return found


def names_in(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            members = [child.name for child in node.body if isinstance(child, ast.FunctionDef)]
            found |= {node.name, *members, *(f"{node.name}.{member}" for member in members)}
        elif isinstance(node, ast.FunctionDef):
            found |= {node.name, *(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
            found |= {name.attr for target in targets for name in ast.walk(target) if isinstance(name, ast.Attribute)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_is_named_exists(page: Path) -> None:
    text = page.read_text()
    links = {str((page.parent / link).resolve().relative_to(ROOT)) for link in LINK.findall(text)}
    missing = [path for path in sorted(named_paths(text) | links) if not (ROOT / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", [page for page in PAGES if page.name in CODE_NAMED], ids=lambda page: page.name)
def test_every_name_of_the_code_exists(page: Path) -> None:
    known = names_of_the_code()
    # Words of one kind of letters may be anything: a setting, a command, a word of a protocol.
    named = {name for name in NAME.findall(page.read_text()) if re.search(r"[a-z][A-Z]|_|\.|^[A-Z]{2}", name)}
    named = {name for name in named if not (ROOT / name).exists() and not re.search(r"\.(pxd|py|md|toml)$", name)}
    missing = sorted(name for name in named if name not in known and name.rpartition(".")[2] not in VERBS)
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_place_of_some_machine(page: Path) -> None:
    assert not re.search(r"/(home|root|tmp|work)/", page.read_text())


def test_the_readme_counts_what_there_is() -> None:
    counts = f"{len(hashing.HASHES)} hash functions and {len(hashing.DISTRIBUTIONS)} distributions"
    assert counts in (ROOT / "README.md").read_text()


def test_the_readme_leads_to_every_page() -> None:
    text = (ROOT / "README.md").read_text()
    assert not [page.name for page in PAGES if page.name != "README.md" and f"{page.relative_to(ROOT)})" not in text]


def test_every_folder_of_the_code_is_in_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    tracked = subprocess.run(["git", "ls-files", "hyper_proxy/*/__init__.py"], cwd=ROOT, capture_output=True, text=True,
                             check=True).stdout.split()  # fmt: skip
    layers = {str(Path(path).parent) for path in tracked if path.count("/") == 2}
    assert not [folder for folder in layers if f"`{folder}/`" not in text]


def test_what_the_proxy_says_of_a_denied_command_is_what_it_says() -> None:
    (instance,) = load_text(SHOP, "shop.toml").instances
    page = (ROOT / "docs" / "errors.md").read_text()
    with pytest.raises(PolicyDenied) as denied:
        check_allowed(instance, "FLUSHALL")
    assert f"``ERR {denied.value}``" in page
    assert f"``{NO_RESIZE.decode().strip()}``" in page


def test_no_program_is_typed_that_is_not_named_as_a_need() -> None:
    """`nc` is not everywhere."""
    texts = [*(page.read_text() for page in PAGES), WELCOME]
    assert not [line for text in texts for line in text.splitlines() if re.search(r"\| nc\b", line)]
