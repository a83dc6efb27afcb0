"""Hot loops: found by their first line, run compiled or plain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hyper_proxy.build import ROOT, compiled_modules, hot_files, module_name, shared_object

HISTOGRAM = ROOT / "hyper_proxy/stats/histogram.py"
SCRIPT = """
from hyper_proxy.build import state
from hyper_proxy.stats import histogram
print(histogram.__file__.rpartition(".")[2], state(), sep="|")
"""


def run(**environment: str) -> str:
    env = {**os.environ, **environment}
    return subprocess.check_output([sys.executable, "-c", SCRIPT], cwd=ROOT, env=env, text=True).strip()


def test_hot_loops_are_found_by_their_first_line(tmp_path: Path) -> None:
    package = tmp_path / "workers/deep"
    package.mkdir(parents=True)
    (package / "hot.py").write_text("# cython: language_level=3\n")
    (package / "cold.py").write_text('"""Not hot."""\n# cython: language_level=3\n')
    assert hot_files(tmp_path) == [package / "hot.py"]
    assert module_name(package / "hot.py", tmp_path) == "workers.deep.hot"


def test_every_hot_loop_names_the_same_directives() -> None:
    first = {path.read_text().partition("\n")[0] for path in hot_files()}
    assert first == {"# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True"}


def test_the_environment_asks_for_plain_python() -> None:
    assert run(HYPER_PROXY_PLAIN="1") == "py|hot loops: plain Python"


def test_what_is_compiled_is_used_and_reported() -> None:
    compiled = shared_object(HISTOGRAM) is not None
    assert ("hyper_proxy.stats.histogram" in compiled_modules()) == compiled
    assert run(HYPER_PROXY_PLAIN="").startswith("so|" if compiled else "py|")
