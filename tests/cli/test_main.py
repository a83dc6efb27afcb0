"""The command's table of verbs, and what main() makes of wrong words and of errors."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hyper_proxy import __version__
from hyper_proxy.cli import main as cli
from hyper_proxy.common.errors import BackendError
from tests.kit.fleet import ROOT


@pytest.mark.parametrize("name", cli.VERBS)
def test_every_verb_has_a_module_with_arguments_and_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(cli.VERBS[name].module)
    assert inspect.getdoc(module)
    with pytest.raises(SystemExit) as stopped:
        cli.main([name, "--help"])
    assert stopped.value.code == 0
    assert f"usage: hyper-proxy {name}" in capsys.readouterr().out


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text and verb.help in text for name, verb in cli.VERBS.items())


def test_version_says_whether_the_hot_loops_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith(f"hyper-proxy {__version__}, hot loops: ")


@pytest.mark.parametrize(("words", "said"), [([], "VERB"), (["chek"], "did you mean 'check'?"), (["check"], "FILE"),
    (["reload"], "did you mean 'ctl reload'?"), (["relaod"], "did you mean 'ctl reload'?"),
    (["nodes"], "did you mean 'ctl show nodes'?"), (["stop"], "did you mean 'ctl stop'?"),
    (["start"], "did you mean 'serve'?"), (["reshrad"], "did you mean 'reshard'?"),
    (["reshard", "-c", "x.toml", "--rate", "-1", "shop"], "'-1' is not a number above 0"),
    (["ctl", "--admin", "127.0.0.1", "health"], "'127.0.0.1' has no port: host:port is wanted"),
    (["explain"], "usage: hyper-proxy explain -c FILE [--json] INSTANCE COMMAND [ARG...]"),
    (["serve", "-c", "x.toml", "y.toml"], "not allowed with argument"),
    (["serve", "-c", ""], "argument -c/--config: it is empty: is a variable not set?"),
    (["serve", ""], "argument FILE: it is empty: is a variable not set?"),
    (["serve", "--data", ""], "argument --data: it is empty: is a variable not set?"),
    (["ctl", "--timeout", "nan", "wait-ready"], "'nan' is not a number from 0 to 86400"),
])
def test_wrong_usage_is_status_2(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["foo"]])
def test_who_names_no_verb_is_shown_all(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(words)
    text = capsys.readouterr().err
    assert all(f"  {name} " in text and verb.help in text for name, verb in cli.VERBS.items())


def test_check_imports_neither_the_fleet_nor_gevent() -> None:
    code = (
        "import sys; from hyper_proxy.cli.main import main; main(['check', 'etc/minimal.toml']);"
        "print({name.split('.')[0] for name in sys.modules} & {'gevent', 'flask', 'yaml', 'supervisor', 'workers'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_package_is_the_command() -> None:
    words = [sys.executable, "-m", "hyper_proxy", "--version"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"hyper-proxy {__version__}")


@pytest.mark.parametrize("words", [["check", "-c"], ["serve"], ["serve", "-c"]])
def test_a_file_is_named_with_and_without_c(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("oops = 1\n")
    command = [sys.executable, "-m", "hyper_proxy", *words, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == os.EX_CONFIG
    assert f"{file}:1: error: HP104 oops: unknown key" in done.stdout + done.stderr


@pytest.mark.parametrize("words", [["check"], ["serve", "-c"], ["explain", "-c"], ["reshard", "-c"], ["top", "-c"]])
def test_a_file_that_is_not_there_is_one_line_of_every_verb(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "gone.toml"
    more = {"explain": ["user", "GET", "a"], "reshard": ["user"]}.get(words[0], [])
    command = [sys.executable, "-m", "hyper_proxy", *words, str(file), *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == os.EX_CONFIG
    said = (done.stdout + done.stderr).splitlines()
    assert [line for line in said if not line.startswith("1 error in ")] == [
        f"{file}: error: HP101 cannot be read: No such file or directory"
    ]


def test_why_a_fleet_can_not_be_asked_is_in_the_words_of_the_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["ctl", "--admin", "unix:/dev/null/a", "health"]) == 1
    assert capsys.readouterr().err == "hyper-proxy: the fleet does not answer on unix:/dev/null/a: Not a directory\n"


def test_reshard_names_the_instance_that_was_meant() -> None:
    words = [sys.executable, "-m", "hyper_proxy", "reshard", "-c", "etc/minimal.toml", "usr"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stderr == "hyper-proxy: there is no instance 'usr'; did you mean 'user'?\n"


def test_an_error_of_the_project_is_one_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: object) -> int:
        raise BackendError("user", "10.0.0.1:6379", "refused", "connection refused")

    monkeypatch.setattr("hyper_proxy.cli.check.run", fail)
    assert cli.main(["check", "x"]) == 1
    assert capsys.readouterr().err == "hyper-proxy: instance 'user' node '10.0.0.1:6379': connection refused\n"


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "hyper_proxy.cli.main", "check", *["/missing.toml"] * 5000],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(30) != os.EX_OK


@pytest.mark.parametrize("words", ["check etc/minimal.toml", "--version"])
def test_an_output_that_takes_no_more_is_one_line_and_status_1(words: str) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "hyper_proxy.cli.main", *words.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert done.stderr == "hyper-proxy: the output is not complete: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize(("closed", "heard"), [(">&-", False), ("<&-", True), ("2>&-", True), ("<&- >&- 2>&-", False)])
def test_closed_streams_are_as_good_as_open_ones(closed: str, heard: bool) -> None:
    command = f'"$0" -m hyper_proxy.cli.main check etc/minimal.toml {closed}'
    words = ["sh", "-c", command, sys.executable]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("etc/minimal.toml: ok, 1 instance(s)\n" if heard else "")


def test_what_is_not_the_fault_of_the_output_is_not_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(arguments: object) -> int:
        raise OSError(errno.ENOSPC, "of another file")

    monkeypatch.setattr("hyper_proxy.cli.check.run", fail)
    with pytest.raises(OSError, match="of another file"):
        cli.main(["check", "x"])
