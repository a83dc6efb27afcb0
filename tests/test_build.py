"""Hot loops: found by their first line, run compiled or plain."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
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


def test_every_hot_loop_names_the_directives_of_its_kind() -> None:
    first = {path.read_text().partition("\n")[0] for path in hot_files()}
    assert first == {
        "# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True",  # written for C
        "# cython: language_level=3, annotation_typing=False",  # compiled as it is
    }


def test_the_environment_asks_for_plain_python() -> None:
    assert run(HYPER_PROXY_PLAIN="1") == "py|hot loops: plain Python"


def test_what_is_compiled_is_used_and_reported() -> None:
    compiled = shared_object(HISTOGRAM) is not None
    assert ("hyper_proxy.stats.histogram" in compiled_modules()) == compiled
    assert run(HYPER_PROXY_PLAIN="").startswith("so|" if compiled else "py|")


DIGEST = "import runpy; print(runpy.run_path('scripts/build')['tools_digest']().hex())"


def test_two_environments_of_one_interpreter_need_not_compile_for_themselves(tmp_path: Path) -> None:
    venv.create(tmp_path, symlinks=True)
    packages = tmp_path / f"lib/python{sysconfig.get_python_version()}/site-packages"
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib"))
    pythons = sys.executable, tmp_path / "bin/python"
    digests = [subprocess.check_output([one, "-c", DIGEST], cwd=ROOT, text=True) for one in pythons]
    assert digests[0] == digests[1]


PYTHON_WITHOUT_PACKAGES = """#!/bin/sh
case "$*" in
*pip*-r*) cp .cache/requirements.txt asked; echo "no such version" >&2; exit 1 ;;
*pip*test*) exit 1 ;;
*scripts/build*) touch compiled ;;
*) exec python3 "$@" ;;
esac
"""


def test_a_package_that_is_not_to_be_had_is_known_before_anything_is_compiled(tmp_path: Path) -> None:
    for name in ("setup.cfg", "pyproject.toml", "scripts/environment.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    programs = {".venv/bin/python": PYTHON_WITHOUT_PACKAGES, "bin/apt-get": "#!/bin/sh\nexit 1\n"}
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    script = tmp_path / "scripts/some"
    script.write_text('set -eu\n. "$(dirname -- "$0")/environment.sh"\nmake_environment\n')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(["sh", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "no such version" in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "compiled").exists()
    asked = (tmp_path / "asked").read_text().split()
    assert {"gevent>=24.2", "cython>=3.1", "setuptools>=69", "pytest>=8.2"} <= set(asked), "all at once"
