"""The uncompiled form of a hot loop, so that one set of cases runs on both forms.

    @both("hyper_proxy.hashing.placement")
    def test_an_empty_key_has_a_shard(module): ...
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from hyper_proxy.build import hot_files, module_name
from hyper_proxy.plain import SourceFirst

_plain: dict[str, ModuleType] = {}  # the plain hot loops loaded so far; they know each other, not the compiled ones


def plain(name: str) -> ModuleType:
    """The module from its source, beside the one that `import` finds; all other modules are the ordinary ones."""
    if name not in _plain:
        _load(name)
    return _plain[name]


def _load(name: str) -> None:
    hot = {module_name(path) for path in hot_files()}
    assert name in hot, f"{name} is no hot loop"
    importlib.import_module(name)  # first, so that ordinary modules which it imports see the ordinary hot loops
    ordinary = {module: sys.modules.pop(module) for module in hot & sys.modules.keys()}
    attributes = {module: _take_attribute(module) for module in hot}
    sys.modules.update(_plain)
    sys.meta_path.insert(0, SourceFirst)
    try:
        importlib.import_module(name)
    finally:
        sys.meta_path.remove(SourceFirst)
        for module in hot & sys.modules.keys():
            _plain[module] = sys.modules.pop(module)
            _take_attribute(module)
        sys.modules.update(ordinary)
        for module, attribute in attributes.items():
            if attribute is not None:
                setattr(sys.modules[module.rpartition(".")[0]], module.rpartition(".")[2], attribute)


def _take_attribute(module: str) -> ModuleType | None:
    """Remove a module from its package, where `from package import module` would find it before sys.modules."""
    package, _, attribute = module.rpartition(".")
    taken: ModuleType | None = vars(sys.modules[package]).pop(attribute, None) if package in sys.modules else None
    return taken


def both(*names: str) -> pytest.MarkDecorator:
    """Run a test with `module` (for several names: a tuple of modules) as built, and again plain."""
    forms = [tuple(importlib.import_module(name) for name in names), tuple(plain(name) for name in names)]
    values = [form if len(names) > 1 else form[0] for form in forms]
    return pytest.mark.parametrize("module", values, ids=["built", "plain"])
