"""hyper-proxy check: its lines, its json, its exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hyper_proxy.cli.main import main
from tests.kit.fleet import COMMAND, ROOT

NOBODY = 65534

GOOD = """\
[[instance]]
name = "user"
protocol = "redis"
listen = ["127.0.0.1:6380"]
limits.max_clients = 4
[[instance.level]]
storage = "redis"
servers = ["10.0.0.1:6379:1 a", "10.0.0.2:6379:1 b"]
"""
BAD = GOOD.replace("max_clients", "max_client").replace(":1 b", ":0 b")
WARNED = f'[admin]\nlisten = "0.0.0.0:22122"\n{GOOD}'


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    paths = {}
    for name, text in (("good", GOOD), ("bad", BAD), ("warned", WARNED)):
        (tmp_path / f"{name}.toml").write_text(text)
        paths[name] = str(tmp_path / f"{name}.toml")
    return paths


def test_a_good_file_is_status_0(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", files["good"]]) == 0
    assert capsys.readouterr().out == f"{files['good']}: ok, 1 instance(s)\n"


def test_warnings_are_shown_and_are_status_0(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", files["warned"]]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(f"{files['warned']}:2: warning: HP403 admin.listen: ")
    assert said.err == f"1 warning in {files['warned']}\n"


def test_every_finding_of_every_file_is_shown(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", files["bad"], files["good"], "/missing/x.toml"]) == 78
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert said.err == f"2 errors in {files['bad']}\n1 error in /missing/x.toml\n"
    assert all(re.match(r"\S+?(:\d+)?: (error|warning): HP\d{3} \S", line) or ": ok" in line for line in lines)
    assert [line.partition(": HP")[0] for line in lines] == [
        f"{files['bad']}:5: error",
        f"{files['bad']}:8: error",
        f"{files['good']}: ok, 1 instance(s)",
        "/missing/x.toml: error",
    ]
    assert "did you mean 'max_clients'?" in lines[0]


def test_json_is_one_list_of_objects(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json", files["bad"], files["good"]]) == 78
    rows = json.loads(capsys.readouterr().out)
    assert [(row["file"], row["line"], row["level"], row["code"]) for row in rows] == [
        (files["bad"], 5, "error", "HP104"),
        (files["bad"], 8, "error", "HP110"),
    ]
    assert set(rows[0]) == {"file", "line", "level", "code", "message"}
    assert main(["check", "--json", files["good"]]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("argument", "line", "code"),
    [
        ("/missing.toml", "", "HP101"),
        ("/tmp", "", "HP101"),
        ("/dev/null", "", "HP101"),
        (sys.executable, ":1", "HP102"),
    ],
)
def test_what_is_no_configuration_is_a_finding(
    argument: str, line: str, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a line where one was read."""
    assert main(["check", argument]) == 78
    said = capsys.readouterr().out
    assert said.startswith(f"{argument}{line}: error: {code} ") or (argument == sys.executable and "HP101" in said)


def test_a_key_that_is_no_word_is_in_quotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.toml"
    text = GOOD.replace("servers = ", 'route = {prefix = {"session:" = 5, "" = "main"}}\n  servers = ')
    file.write_text(text)
    assert main(["check", str(file)]) == 78
    assert 'route.prefix."session:": ' in capsys.readouterr().out


def test_a_pipe_will_do_once(tmp_path: Path) -> None:
    def run(words: list[str], text: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hyper_proxy.cli.main", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, input=text, cwd=tmp_path, env=environment, capture_output=True, text=True,
                              timeout=60, check=False)  # fmt: skip

    assert run(["check", "/dev/stdin"], GOOD).stdout == "/dev/stdin: ok, 1 instance(s)\n"
    assert run(["check", "/dev/stdin"], BAD).returncode == 78
    pool = "alpha:\n  listen: 127.0.0.1:22121\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n"
    imported = run(["import", "nutcracker", "/dev/stdin"], f"{pool}  servers:\n   - 127.0.0.1:6379:1\n").stdout
    assert run(["check", "/dev/stdin"], imported).returncode == 0
    refused = run(["serve", "-c", "/dev/stdin"], GOOD)  # a reload would read it again
    assert refused.returncode == 78 and "it is no regular file" in refused.stderr


def test_an_unreadable_file_is_a_finding(tmp_path: Path, files: dict[str, str]) -> None:
    """As somebody who may not read it: root, who may read everything, becomes nobody once all code is imported."""
    secret = tmp_path / "secret.toml"
    secret.write_text(GOOD)
    secret.chmod(0o000)
    code = (
        "import os, sys; from argparse import Namespace; from hyper_proxy.cli import check\n"
        "good, secret = (Namespace(files=[file], json=False) for file in sys.argv[1:])\n"
        "check.run(good)\n"
        f"if os.getuid() == 0: os.setuid({NOBODY})\n"
        "sys.exit(check.run(secret))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, files["good"], str(secret)], capture_output=True, text=True, check=False
    )
    said = done.stdout.splitlines()[1:]
    assert (done.returncode, said) == (78, [f"{secret}: error: HP101 cannot be read: Permission denied"])


def test_a_log_that_has_no_folder_is_found_before_the_fleet_is_started(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text(f'{GOOD}[log]\nfile = "logs/proxy.log"\n')
    for words in ("check", str(file)), ("serve", "-c", str(file)):
        done = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, timeout=30)
        said = done.stdout + done.stderr
        assert (done.returncode, f"{file}:10: error: HP228 log.file: there is no folder {tmp_path}/logs: " in said) == (
            78, True,
        ), said  # fmt: skip
    (tmp_path / "logs").mkdir()
    assert main(["check", str(file)]) == 0
