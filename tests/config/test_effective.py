"""What is in force, key by key: complete, with its line, comparable, and without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyper_proxy.config.effective import Effective, differences, effective
from hyper_proxy.config.lines import find_lines
from hyper_proxy.config.load import load_text
from hyper_proxy.config.notes import show_path
from hyper_proxy.config.settings import SETTINGS

SAMPLE = (Path(__file__).resolve().parents[2] / "etc" / "hyper_proxy.toml").read_text()
TEXT = """
[log]
level = "debug"
max_bytes = "1MB"
[[instance]]
name = "shop"
protocol = "redis"
listen = ["127.0.0.1:6380"]
allow = ["keys"]
password = "hush"
  [[instance.level]]
  storage = "redis"
  timeout = { read_ms = 300 }
  servers = ["127.0.0.1:6379:2 a", "127.0.0.1:6377"]
"""


def rows(text: str) -> dict[str, Effective]:
    lines = {show_path(path): line for path, line in find_lines(text).items()}
    return {row.key: row for row in effective(load_text(text, "x.toml"), lines)}


def test_every_setting_of_the_table_is_shown() -> None:
    shown = {key.replace("[0]", "").split("]")[-1].lstrip(".").rpartition(".")[2] for key in rows(SAMPLE)}
    assert {row.key for row in SETTINGS if not row.only or {"redis", "memcache"} & set(row.only)} <= shown


@pytest.mark.parametrize(
    ("key", "value", "default", "line", "takes"),
    [
        ("proxy.workers", "0", "0", 0, "new workers"),
        ("proxy.pidfile", '""', '""', 0, "a restart"),
        ("admin.listen", '"127.0.0.1:22122"', '"127.0.0.1:22122"', 0, "a reload"),
        ("log.level", '"debug"', '"info"', 3, "a reload"),
        ("log.max_bytes", '"1MB"', '"100MB"', 4, "a reload"),
        ("instance[shop].name", '"shop"', "", 6, "a reload"),
        ("instance[shop].allow", '["KEYS"]', "[]", 9, "a reload"),
        ("instance[shop].limits.max_key_bytes", '"512MB"', '"512MB"', 0, "a reload"),
        ("instance[shop].level[0].timeout.read_ms", "300", "200", 13, "a reload"),
        ("instance[shop].level[0].servers", '["127.0.0.1:6379:2 a", "127.0.0.1:6377"]', "", 14, "a reload"),
    ],
)
def test_a_key_has_value_default_line_and_what_a_change_takes(
    key: str, value: str, default: str, line: int, takes: str
) -> None:
    row = rows(TEXT)[key]
    assert (row.value, row.default, row.line, row.takes) == (value, default, line, takes)


def test_keys_without_a_meaning_are_left_out() -> None:
    assert "instance[shop].level[0].lushan_db" not in rows(TEXT)


def test_secrets_are_masked_and_their_change_is_seen() -> None:
    row = rows(TEXT)["instance[shop].password"]
    assert row.masked().value == '"***"'
    assert rows(TEXT)["instance[shop].level[0].password"].masked().value == '""'
    changed = list(rows(TEXT.replace("hush", "quiet")).values())
    (found,) = differences(list(rows(TEXT).values()), changed)
    assert found == {"key": "instance[shop].password", "before": '"***"', "after": '"***"', "line": 10}


def test_an_instance_that_comes_or_goes_is_a_difference_of_all_its_keys() -> None:
    more = TEXT + TEXT[TEXT.index("[[instance]]") :].replace("shop", "other").replace("6380", "6381")
    found = differences(list(rows(TEXT).values()), list(rows(more).values()))
    assert {row["key"].partition("]")[0] for row in found} == {"instance[other"}
    assert all(row["before"] is None for row in found)
    back = differences(list(rows(more).values()), list(rows(TEXT).values()))
    assert all(row["after"] is None for row in back) and len(back) == len(found)
