"""What the page is made of travels with the package."""

from __future__ import annotations

from setuptools import Distribution

from tests.kit.fleet import ROOT

FOLDER = ROOT / "supervisor" / "sidecar"


def test_templates_style_and_script_are_installed() -> None:
    project = Distribution({"src_root": str(ROOT)})
    project.parse_config_files([str(ROOT / "setup.cfg")])
    files = project.get_command_obj("build_py")
    files.ensure_finalized()
    taken = {name for package, _, _, names in files.data_files if package == "supervisor.sidecar" for name in names}
    there = {str(path.relative_to(FOLDER)) for name in ("templates", "static") for path in (FOLDER / name).iterdir()}
    assert there == taken
