"""Which files are hot loops, and whether they run compiled.

A hot loop is a file whose first line starts with `# cython:`. It is ordinary Python that Cython can also compile; the
shared object then lies beside it and wins on import, unless HYPER_PROXY_PLAIN=1 asks for the source (plain.py). With
`annotation_typing=False` in that line its annotations are for people alone: it is compiled as it is, with one meaning.
"""

from __future__ import annotations

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from hyper_proxy.plain import plain_wanted

C_FLAGS = ["-g0"]  # besides Python's own; debug information doubles the size and a third of the time
MARK = b"# cython:"
PACKAGES = ("hyper_proxy", "workers", "supervisor")
ROOT = Path(__file__).resolve().parent.parent


def hot_files(root: Path = ROOT, folders: tuple[str, ...] = PACKAGES) -> list[Path]:
    """The hot loops in these folders of `root`, sorted."""
    found = []
    for package in folders:
        for path in (root / package).rglob("*.py"):
            with path.open("rb") as file:
                if file.read(len(MARK)) == MARK:
                    found.append(path)
    return sorted(found)


def module_name(path: Path, root: Path = ROOT) -> str:
    """The import name of a file below `root`: a/b/c.py is a.b.c."""
    return ".".join(path.relative_to(root).with_suffix("").parts)


def shared_object(path: Path) -> Path | None:
    """The compiled form that lies beside a hot loop and that this interpreter would load."""
    for suffix in EXTENSION_SUFFIXES:
        candidate = path.with_name(path.stem + suffix)
        if candidate.exists():
            return candidate
    return None


def compiled_modules() -> list[str]:
    """Names of the hot loops that run compiled in this process."""
    if plain_wanted():
        return []
    return [module_name(path) for path in hot_files() if shared_object(path)]


def state() -> str:
    """One line for people: are the hot loops compiled?"""
    compiled, total = len(compiled_modules()), len(hot_files())
    if compiled == total:
        return "hot loops: compiled"
    if compiled == 0:
        return "hot loops: plain Python"
    return f"hot loops: {compiled} of {total} compiled"
