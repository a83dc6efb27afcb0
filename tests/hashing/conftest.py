"""`hashing`: the package as it is built, and once more from its sources alone."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

import hyper_proxy
import hyper_proxy.hashing
from hyper_proxy.plain import SourceFirst

PACKAGE = "hyper_proxy.hashing"


def plain_package() -> ModuleType:
    """The package with all its modules imported from source, beside the ordinary one, which stays in sys.modules."""
    ordinary = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(PACKAGE)}
    sys.meta_path.insert(0, SourceFirst)
    try:
        return importlib.import_module(PACKAGE)
    finally:
        sys.meta_path.remove(SourceFirst)
        for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
            del sys.modules[name]
        sys.modules.update(ordinary)
        vars(hyper_proxy)["hashing"] = ordinary[PACKAGE]


FORMS = {"built": hyper_proxy.hashing, "plain": plain_package()}


@pytest.fixture(params=FORMS)
def hashing(request: pytest.FixtureRequest) -> ModuleType:
    """The package hyper_proxy.hashing in one of its two forms."""
    return FORMS[request.param]
