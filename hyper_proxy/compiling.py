"""How `pip install` compiles the hot loops: two command classes that pyproject.toml names.

All or nothing: compiled files use each other's C interfaces, so when one cannot be compiled (no compiler, no Python.h)
every one stays plain Python, the installation succeeds, and `hyper-proxy --version` says so.

setuptools loads this file by its path, before the package is importable. It does so for every command that is run in
this folder, `cythonize -i FILE` too; such a command brings its own extensions and gets the ordinary behaviour.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from hyper_proxy.build import C_FLAGS, hot_files, module_name, shared_object  # noqa: E402


class HotLoop(Extension):
    """A hot loop that `pip install` found by itself."""


def is_stale(path: Path) -> bool:
    """Is the shared object beside a hot loop missing, or older than the source or any class layout?"""
    built = shared_object(ROOT / path)
    sources = [ROOT / path, *ROOT.glob("hyper_proxy/**/*.pxd")]
    return built is None or built.stat().st_mtime < max(source.stat().st_mtime for source in sources)


class Build(build):
    """Tells setuptools early that there are extensions, so that the wheel is named for this platform."""

    def finalize_options(self) -> None:
        """Find the hot loops."""
        if not self.distribution.ext_modules:
            self.distribution.ext_modules = [
                HotLoop(module_name(path), [str(path.relative_to(ROOT))], extra_compile_args=C_FLAGS)
                for path in hot_files(ROOT)
            ]
        super().finalize_options()


class BuildExt(build_ext):
    """Compiles the hot loops, or none of them."""

    def build_extensions(self) -> None:
        """Compile; on failure remove what was built and go on without."""
        if not all(isinstance(extension, HotLoop) for extension in self.extensions):
            super().build_extensions()
            return
        if self.editable_mode:
            self.extensions[:] = [extension for extension in self.extensions if is_stale(Path(extension.sources[0]))]
        try:
            self.build_hot_loops()
        except (CCompilerError, BaseError, OSError) as error:
            self.warn(f"the hot loops stay plain Python: {error}")
            for path in hot_files(Path(self.build_lib)) + (hot_files(ROOT) if self.editable_mode else []):
                if built := shared_object(path):
                    built.unlink()
            self.extensions[:] = []

    def build_hot_loops(self) -> None:
        """Python to C, C to shared objects."""
        from Cython.Build import cythonize

        self.parallel = os.cpu_count()
        if self.extensions:
            print(f"compiling {len(self.extensions)} hot loops: a minute, or some", file=sys.stderr, flush=True)
        self.extensions[:] = cythonize(self.extensions, quiet=True, build_dir=self.build_temp, nthreads=self.parallel)
        for extension in self.extensions:
            extension._needs_stub = False  # setuptools sets this on its own objects; cythonize made new ones
        super().build_extensions()
