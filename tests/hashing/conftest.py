"""`hashing`: the package as it is built, and once more from its sources alone."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

import hyper_proxy.hashing
from hyper_proxy.plain import SourceFirst

PACKAGE = "hyper_proxy.hashing"
BESIDE = "hyper_proxy.common.xxh64"  # which it is made of, too


def loaded() -> dict[str, ModuleType]:
    """Those of its modules that are in sys.modules."""
    return {name: module for name, module in sys.modules.items() if name.startswith((PACKAGE, BESIDE))}


def plain_package() -> ModuleType:
    """The package with all its modules imported from source, beside the ordinary one, which stays in sys.modules."""
    ordinary = loaded()
    for name in ordinary:
        del sys.modules[name]
    sys.meta_path.insert(0, SourceFirst)
    try:
        return importlib.import_module(PACKAGE)
    finally:
        sys.meta_path.remove(SourceFirst)
        for name in loaded():
            del sys.modules[name]
        sys.modules.update(ordinary)
        for name in (PACKAGE, BESIDE):
            parent, _, attribute = name.rpartition(".")
            setattr(sys.modules[parent], attribute, ordinary[name])


FORMS = {"built": hyper_proxy.hashing, "plain": plain_package()}


@pytest.fixture(params=FORMS)
def hashing(request: pytest.FixtureRequest) -> ModuleType:
    """The package hyper_proxy.hashing in one of its two forms."""
    return FORMS[request.param]
