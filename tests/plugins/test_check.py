"""Plug-ins that cannot be loaded: `check` says FILE:LINE of the configuration and of the plug-in, and exits with 78."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hyper_proxy.config.load import inspect
from hyper_proxy.plugins import load_plugins
from tests.kit.fleet import COMMAND, ROOT
from tests.plugins.texts import ECHO, config, instance

TIMEOUT = "from hyper_proxy import plugin\nimport time\ntime.sleep(60)\n"
HASH = "from hyper_proxy import plugin\n\n\n@plugin.hash_function('odd')\ndef odd(key):\n    return {}\n"
STORAGE = "from hyper_proxy import plugin\n\n\n@plugin.storage('half')\nclass Half(plugin.KeyValue):\n    pass\n"
WHOLE = """from hyper_proxy import plugin


@plugin.storage("whole", files=True)
class Whole(plugin.ReadOnly):
    def __init__(self, server, level):
        pass

    def get_many(self, keys):
        return [None for key in keys]

    def count(self):
        return 0

    def scan(self, cursor, limit):
        return 0, []
"""


def check(folder: Path, text: str) -> tuple[int, list[str]]:
    """Status and findings of `hyper-proxy check`."""
    file = folder / "hp.toml"
    file.write_text(text)
    done = subprocess.run([*COMMAND, "check", str(file)], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.replace(str(folder), "DIR").splitlines()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def broken(:\n", "DIR/bad.py:1: SyntaxError: invalid syntax"),
        ("import hyper_proxy\n\nnothing_there\n", "DIR/bad.py:3: NameError: name 'nothing_there' is not defined"),
        ("import sys\nsys.exit(0)\n", "DIR/bad.py:2: SystemExit: 0"),
        ("import no_such_library\n", "DIR/bad.py:1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("X = 1\n", "DIR/bad.py: it registers nothing: no protocol, storage, hash or distribution"),
        (TIMEOUT, "DIR/bad.py:3: it has not been loaded within 5 s"),
        (ECHO.replace("def reduce", "def reduces").replace("def split", "def splits"),
         "DIR/bad.py:8: protocol 'echo': it lacks reduce, split"),
        (ECHO.replace("(plugin.Protocol)", ""), "DIR/bad.py:8: protocol 'echo': it is no subclass of plugin.Protocol"),
        (ECHO.replace('"echo")', '"redis")'), "DIR/bad.py:8: protocol 'redis': the name is taken by what is built in"),
        (ECHO.replace('"echo")', '"Echo!")'), "DIR/bad.py:8: protocol: the name 'Echo!' is not a word of small"),
        (ECHO.replace("return f\"!", "return 7 or f\"!"),
         "DIR/bad.py:50: protocol 'echo': refuse: bytes is wanted, not 7"),
        (HASH.format("'x'"),
         "DIR/bad.py:4: hash 'odd' failed with key b'': a number from 0 to 2**64-1 is wanted, not 'x'"),
        (HASH.format("-1"),
         "DIR/bad.py:4: hash 'odd' failed with key b'': a number from 0 to 2**64-1 is wanted, not -1"),
        (HASH.format("key[0]"), "DIR/bad.py:6: hash 'odd' failed with key b'': IndexError: index out of range"),
        ("import itertools\nN = itertools.count()\n" + HASH.format("next(N)"),
         "DIR/bad.py:6: hash 'odd' failed with key b'': 0 again is wanted, not 1"),
        (HASH.replace("odd(key)", "odd(key, seed)"),
         "DIR/bad.py:4: hash 'odd': it is called with (key), which it does not take: missing a required argument: 'se"),
        (HASH.replace("hash_function('odd')", "hash_function"), "DIR/bad.py:4: hash: the decorator lacks the name"),
        (HASH.replace("hash_function(", "distribution(hash='fnv1a_46', name="),
         "DIR/bad.py:4: distribution 'odd': there is no hash 'fnv1a_46'; did you mean 'fnv1a_64'?"),
        (ECHO.replace("def unserialize(self, buffer, start)", "def unserialize(self, buffer)"),
         "DIR/bad.py:10: protocol 'echo': unserialize: it is called with (buffer, start), which it does not take: "),
        (ECHO.replace("def unserialize", "def __init__(self, port):\n        pass\n\n    def unserialize"),
         "DIR/bad.py:10: protocol 'echo': __init__: it is called with (), which it does not take: missing a required"),
        (ECHO.replace("def map", "async def map"), "DIR/bad.py:28: protocol 'echo': map: it is called as a plain func"),
        (ECHO.replace("def reduce", "reduce = 3\n\n    def reduces"),
         "DIR/bad.py:8: protocol 'echo': reduce: a function is wanted, not 3"),
        (WHOLE.replace("server, level", "server"),
         "DIR/bad.py:6: storage 'whole': __init__: it is called with (server, level), which it does not take: "),
        (STORAGE, "DIR/bad.py:4: storage 'half': it lacks clear, count, get_many, put_many, scan, update"),
        (None, "DIR/bad.py cannot be read: No such file or directory"),
        ("", "DIR/bad.py is empty"),
        ("import os\nos._exit(3)\n",
         "the process that read it, and loaded its plug-ins, ended with status 3 while it loaded 'bad.py'"),
        ("import os\nos.abort()\n",
         "the process that read it, and loaded its plug-ins, ended with signal 6 while it loaded 'bad.py'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_both_lines(tmp_path: Path, source: str | None, says: str) -> None:
    if source is not None:
        (tmp_path / "bad.py").write_text(source)
    status, lines = check(tmp_path, config(["bad.py"], instance("redis", 6380)))
    assert status == 78
    (line,) = [line for line in lines if ": error: " in line]
    assert re.match(r"DIR/hp\.toml:[12]: error: HP111 ", line)
    assert says in line


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("1 / 0\n")
    (tmp_path / "echo.py").write_text(ECHO)
    text = config(["bad.py", "echo.py", "gone.py", "echo.py"], instance("echo", 6380), instance("fly", 6381))
    status, lines = check(tmp_path, text)
    errors = [line.removeprefix("DIR/hp.toml:") for line in lines if ": error: " in line]
    assert status == 78
    assert [error[:24] for error in errors] == ["2: error: HP111 proxy.pl"] * 3, "'fly' may be of one that is broken"
    status, lines = check(tmp_path, config(["echo.py"], instance("echo", 6380), instance("fly", 6381)))
    (line,) = [line for line in lines if ": error: " in line]
    assert "HP106" in line and "'fly' is none of redis, memcache, http, echo" in line


def test_a_storage_of_a_plug_in_that_is_not_loaded_brings_no_errors_of_its_servers(tmp_path: Path) -> None:
    text = config(["bad.py"], instance("redis", 6380, "whole", ["one", "two"], 'distribution = "unknown"'))
    (tmp_path / "bad.py").write_text("1 / 0\n" + WHOLE)
    status, lines = check(tmp_path, text)
    assert status == 78
    assert lines == ["DIR/hp.toml:2: error: HP111 proxy.plugins[0]: 'bad.py' cannot be loaded: DIR/bad.py:1: "
                     "ZeroDivisionError: division by zero"]  # fmt: skip
    (tmp_path / "bad.py").write_text(WHOLE)
    _, lines = check(tmp_path, text.replace('distribution = "unknown"', ""))
    assert lines[-1] == "DIR/hp.toml: ok, 1 instance(s)"


def test_paths_of_a_storage_of_addresses_are_told_how_they_would_be_right(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(WHOLE.replace(", files=True", ""))
    status, lines = check(tmp_path, config(["bad.py"], instance("redis", 6380, "whole", ["one"])))
    assert status == 78
    (line,) = [line for line in lines if ": error: " in line]
    assert "HP110" in line and "'one' has no port" in line
    assert line.endswith('; for paths its plug-in writes @plugin.storage("whole", files=True)')


def test_functions_may_be_of_any_form_that_can_be_called_so(tmp_path: Path) -> None:
    forms = """
import functools


def traced(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call


class Counts:
    def __call__(self):
        return 0


@plugin.storage("forms", files=True)
class Forms(Whole):
    __init__ = functools.partialmethod(Whole.__init__)
    count = Counts()

    @staticmethod
    def scan(cursor, limit, more=7):
        return 0, []

    @classmethod
    def clear(cls):
        pass

    @traced
    def get_many(self, keys):
        return []

    def put_many(self, *entries, **more):
        pass


plugin.hash_function("length")(len)
plugin.hash_function("odd")(functools.partial(lambda more, key: more, 7))
"""
    (tmp_path / "forms.py").write_text(WHOLE + forms)
    status, lines = check(tmp_path, config(["forms.py"], instance("redis", 6380, "forms", ["one"])))
    assert (status, lines[-1]) == (0, "DIR/hp.toml: ok, 1 instance(s)"), lines


def test_what_plug_ins_print_is_no_part_of_an_answer_for_programs(tmp_path: Path) -> None:
    encode = "def encode(self, words):\n        print('encoding')\n        return b' '.join(words) + b'\\n'\n\n    "
    prints = 'import os\nprint("by Python")\nos.system("echo by a program")\n'
    (tmp_path / "echo.py").write_text(prints + ECHO.replace("def split", f"{encode}def split"))
    file = tmp_path / "hp.toml"
    file.write_text(config(["echo.py"], instance("echo", 6380)))
    for words in (["check", "--json", str(file)], ["explain", "--json", "-c", str(file), "echo6380", "one"]):
        done = subprocess.run([*COMMAND, *words], cwd=ROOT, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout) is not None, words
        assert "by Python\n" in done.stderr and "by a program\n" in done.stderr


def test_a_distribution_that_makes_no_function_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from hyper_proxy import plugin\n\n\n@plugin.distribution('none')\ndef none(servers):\n    pass\n"
    )
    text = config(["bad.py"], instance("redis", 6380, "redis", ["127.0.0.1:1"], 'distribution = "none"'))
    status, lines = check(tmp_path, text)
    assert status == 78
    (line,) = [line for line in lines if ": error: " in line]
    wanted = "a function from a number to the index of a server is wanted, not None (DIR/bad.py:4)"
    assert f"plug-in 'bad.py' failed in distribution 'none': {wanted}" in line


def test_a_name_that_two_plug_ins_take_is_told(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ECHO)
    (tmp_path / "two.py").write_text(ECHO)
    status, lines = check(tmp_path, config(["one.py", "two.py"], instance("echo", 6380)))
    assert status == 78
    assert any("proxy.plugins[1]: 'two.py' cannot be loaded: DIR/two.py:8: protocol 'echo': the name is taken by "
               "plug-in 'one.py'" in line for line in lines)  # fmt: skip


def test_a_distribution_that_cannot_be_made_is_told_whatever_it_raises(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from hyper_proxy import plugin\n\n\n@plugin.distribution('picky')\ndef picky(servers):\n"
        "    raise plugin.ClientError('not these')\n"
    )
    text = config(["bad.py"], instance("redis", 6380, "redis", ["127.0.0.1:1"], 'distribution = "picky"'))
    status, lines = check(tmp_path, text)
    assert status == 78
    (line,) = [line for line in lines if ": error: " in line]
    assert "plug-in 'bad.py' failed in distribution 'picky': ClientError: not these (DIR/bad.py:6)" in line


def test_a_distribution_is_tried_with_the_servers_of_the_level(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from hyper_proxy import plugin\n\n\n@plugin.distribution('beyond')\ndef beyond(servers):\n"
        "    return lambda value: value % 7\n"
    )
    servers = ["127.0.0.1:1 a", "127.0.0.1:2 b"]
    text = config(["bad.py"], instance("redis", 6380, "redis", servers, 'distribution = "beyond"'))
    status, lines = check(tmp_path, text)
    assert status == 78
    assert any("HP207" in line and "an index from 0 to 1 is wanted" in line for line in lines)


def test_settings_that_mean_nothing_to_a_plug_in_are_told(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(ECHO)
    limits = 'max_line_bytes = "64KB"'
    one = instance("echo", 6380, limits=limits).replace('protocol = "echo"', 'protocol = "echo"\npassword = "x"')
    status, lines = check(tmp_path, config(["echo.py"], one))
    assert status == 78
    assert sum("HP205" in line and "has no meaning for echo" in line for line in lines) == 2


def test_root_runs_no_code_that_others_can_change(tmp_path: Path) -> None:
    assert os.geteuid() == 0, "the tests run as root"
    plugin = tmp_path / "echo.py"
    plugin.write_text(ECHO)
    text = config(["echo.py"], instance("echo", 6380))
    assert check(tmp_path, text)[0] == 0
    plugin.chmod(0o666)
    status, lines = check(tmp_path, text)
    assert status == 78
    assert any("HP112" in line and "DIR/echo.py can be written by others, and root would run it" in line
               for line in lines)  # fmt: skip
    plugin.chmod(0o644)
    os.chown(plugin, 65534, 65534)
    assert any("HP112" in line and "does not belong to root" in line for line in check(tmp_path, text)[1])
    os.chown(plugin, 0, 0)
    tmp_path.chmod(0o777)
    assert any("HP112" in line and "DIR can be written by others" in line for line in check(tmp_path, text)[1])


def test_what_a_plug_in_prints_and_starts_is_not_in_the_way_of_the_findings(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text("import gevent.monkey\ngevent.monkey.patch_all()\n" + ECHO)
    file = tmp_path / "hp.toml"
    file.write_text(config(["echo.py"], instance("echo", 6380)))
    script = (
        f"import sys; from hyper_proxy.apart import inspect_apart; config, _ = inspect_apart({str(file)!r}); "
        "assert config; sys.exit('gevent' in sys.modules or 'hyper_proxy.hashing' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_fault_of_the_reading_itself_ends_with_its_status_and_its_stack() -> None:
    script = "from hyper_proxy import apart; apart.inspect = None; print(apart.inspect_apart('hp.toml')[1][0])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "ended with status 70" in done.stdout
    assert "TypeError: 'NoneType' object is not callable" in done.stderr


def test_code_that_everybody_can_write_is_a_warning_to_other_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin, file = tmp_path / "echo.py", tmp_path / "hp.toml"
    plugin.write_text(ECHO)
    plugin.chmod(0o666)
    file.write_text(config(["echo.py"], instance("echo", 6380)))
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    read, findings = inspect(str(file))
    load_plugins(())
    assert read is not None
    assert [(finding.code, finding.line) for finding in findings] == [("HP407", 2)]
    assert "echo.py can be written by everybody" in findings[0].message
