"""Plug-ins of installed packages, found by their entry point; and what a process has loaded, taken out again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hyper_proxy.config import kinds
from hyper_proxy.config.load import load
from hyper_proxy.hashing import DISTRIBUTIONS, HASHES
from hyper_proxy.plugins import load_plugins
from hyper_proxy.protocol.table import PROTOCOLS
from hyper_proxy.storage.table import KEY_SPACES
from tests.kit.fleet import Fleet
from tests.kit.ports import free_port
from tests.plugins.lines import Lines, replacing_the_worker
from tests.plugins.test_check import check
from tests.plugins.test_hashing import DIGITS
from tests.plugins.texts import ECHO, config, instance


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an installed package `acme`, as pip leaves it, on the path of programs that are started."""
    folder = tmp_path / "site"
    package, about = folder / "acme", folder / "acme-1.0.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[hyper_proxy.plugins]\nacme_echo = acme.front\nlost = gone.front\n")
    (package / "__init__.py").write_text("")
    (package / "words.py").write_text('END = b"!\\n"\n')
    front = ECHO.replace("import time", "from acme.words import END").replace('reply + b"\\n"', "reply + END")
    (package / "front.py").write_text(front)
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return folder


def test_an_installed_package_is_a_plug_in_whose_new_files_a_reload_sees(site: Path, tmp_path: Path) -> None:
    port = free_port()
    text = config(["acme_echo"], instance("echo", port))
    with Fleet(text, tmp_path, env={"PYTHONPATH": f"{site}{os.pathsep}{Path(__file__).parents[2]}"}) as fleet:
        with Lines(port) as client:
            assert client.ask(b"hello\n") == [b"hello!"]
        with replacing_the_worker(port):
            # Longer: Python's cache of compiled files goes by size and second.
            (site / "acme" / "words.py").write_text('END = b" indeed?\\n"\n')
            verdict = fleet.reload()
            assert verdict.accepted, verdict.body
        with Lines(port) as client:
            assert client.ask(b"hello\n") == [b"hello indeed?"]


def test_what_is_not_installed_is_told(site: Path, tmp_path: Path) -> None:
    status, lines = check(tmp_path, config(["acme_eco", "lost"], instance("redis", 6380)))
    assert status == 78
    errors = [line for line in lines if ": error: " in line]
    assert "'acme_eco' is neither a file (NAME.py) nor an entry point of the group hyper_proxy.plugins" in errors[0]
    assert "acme_echo, lost" in errors[0]
    assert "'lost' is in gone.front, which is not installed" in errors[1]


def test_a_fault_in_a_package_is_told_with_its_own_file_and_line(site: Path, tmp_path: Path) -> None:
    (site / "acme" / "words.py").write_text("\nEND = 1 / 0\n")
    status, lines = check(tmp_path, config(["acme_echo"], instance("redis", 6380)))
    assert status == 78
    assert any("DIR/site/acme/words.py:2: ZeroDivisionError: division by zero" in line for line in lines)


TABLES = (PROTOCOLS, KEY_SPACES, HASHES, DISTRIBUTIONS, kinds.STORAGES)
NAMES = (kinds.PROTOCOLS, kinds.KINDS, kinds.KNOWING, kinds.PLACED, kinds.FILES, kinds.LOGIN)


@pytest.fixture
def _unloaded() -> Iterator[None]:
    yield
    load_plugins(())


@pytest.mark.usefixtures("_unloaded")
def test_plug_ins_are_rows_of_the_tables_of_the_built_in_ones_and_leave_them_as_they_were(folder: Path) -> None:
    before = [list(table) for table in (*TABLES, *NAMES)]
    (folder / "digits.py").write_text(DIGITS)
    file = folder / "hp.toml"
    file.write_text(config(["toy.py", "folder.py", "digits.py"], instance("toy", 6380, "folder", ["a"])))
    assert [plugin.name for plugin in load(str(file)).plugins] == ["toy.py", "folder.py", "digits.py"]
    assert type(PROTOCOLS["toy"]) is type(PROTOCOLS["redis"])
    assert type(HASHES["digits"]) is type(HASHES["md5"])
    assert type(DISTRIBUTIONS["backwards"]) is type(DISTRIBUTIONS["ketama"])
    assert "folder" in KEY_SPACES
    assert "folder" in kinds.STORAGES["redis"]
    file.write_text(config([], instance("redis", 6380)))
    load(str(file))
    assert [list(table) for table in (*TABLES, *NAMES)] == before
