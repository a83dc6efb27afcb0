"""The table of settings, the sample files and the reference say the same."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hyper_proxy.config import model
from hyper_proxy.config.load import inspect, inspect_text
from hyper_proxy.config.notes import Notes
from hyper_proxy.config.place import REQUIRED, Place
from hyper_proxy.config.reference import update
from hyper_proxy.config.setting import ByProtocol, Setting
from hyper_proxy.config.settings import SECTIONS, SETTINGS, keys_of
from supervisor.change import COLD, RENEWING

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = (ROOT / "etc/hyper_proxy.toml").read_text("utf-8")
DEFAULT_LINE = re.compile(r"^( *)#([a-z_]+ = .*)$", re.MULTILINE)

RECORDS = {
    "proxy": model.Config, "log": model.Log, "instance": model.Instance, "limits": model.Limits, "level": model.Level,
    "timeout": model.Timeout, "backoff": model.Backoff, "rooms": model.Rooms,
}  # fmt: skip


def test_the_page_has_the_present_reference() -> None:
    page = (ROOT / "docs/configuration.md").read_text("utf-8")
    assert update(page) == page, "run: python -m hyper_proxy.config.reference docs/configuration.md"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks"):
        update("# Configuration\n")


@pytest.mark.parametrize("name", ["hyper_proxy.toml", "minimal.toml"])
def test_the_samples_have_no_finding(name: str) -> None:
    config, found = inspect(str(ROOT / "etc" / name))
    assert config is not None
    assert [one for one in found if one.code != "HP410"] == []  # this machine need not have /run/hyper_proxy


def _tables(data: dict[str, Any], section: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every table of a section's name, with the name."""
    found = [(section, data)]
    for name, row in SECTIONS.items():
        if row.parent == section and row.key in data:
            inner = data[row.key]
            for table in inner if row.many else [inner]:
                found += _tables(table, name)
    return found


def test_the_sample_shows_every_key() -> None:
    everything = tomllib.loads(DEFAULT_LINE.sub(r"\1\2", SAMPLE))
    shown = {(section, key) for section, table in _tables(everything) for key in table}
    assert {(setting.section, setting.key) for setting in SETTINGS} - shown == set()
    assert inspect_text(DEFAULT_LINE.sub(r"\1\2", SAMPLE), "sample.toml")[0] is not None


def _default(setting: Setting, protocol: str) -> object:
    default = setting.default
    return default.values[protocol] if isinstance(default, ByProtocol) else default


def test_the_defaults_that_the_sample_shows_are_the_defaults() -> None:
    shown = tomllib.loads(DEFAULT_LINE.sub(r"\1\2", SAMPLE))
    written = tomllib.loads(SAMPLE)
    place = Place((), "/", Notes("sample", {}))
    compared = set()
    protocol = ""
    for (section, table), (_, real) in zip(_tables(shown), _tables(written), strict=True):
        protocol = str(table.get("protocol", protocol))
        for key, setting in keys_of(section).items():
            if key in table and key not in real:
                expected = _default(setting, protocol)
                assert setting.kind.read(table[key], place) == setting.kind.read(expected, place), (section, key)
                compared.add((section, key))
    examples = {("level", key) for key in ("hash_tag", "lushan_db", "table", "where", "database", "route")}
    examples.add(("rooms", "on_return"))  # check warns where it is left to the default
    silent = {(row.section, row.key) for row in SETTINGS if row.default is not REQUIRED} - compared - examples
    assert silent == set(), "the sample does not show these defaults"


def test_every_comment_that_looks_like_a_key_is_one() -> None:
    known = {setting.key for setting in SETTINGS}
    assert {match[2].partition(" ")[0] for match in DEFAULT_LINE.finditer(SAMPLE)} <= known


@pytest.mark.parametrize("section", RECORDS)
def test_the_model_has_a_field_for_every_setting_and_no_other(section: str) -> None:
    fields = {field.name for field in dataclasses.fields(RECORDS[section])}
    tables = {row.key for row in SECTIONS.values() if row.parent == section}
    beside = {
        "proxy": {"path", "admin", "admin_token", "show_keys", "log", "instances"},
        "level": {"peers", "pools"},
        "rooms": {"pinned"},
        "instance": {"levels"},
    }
    assert fields == set(keys_of(section)) | (tables - {"level", "pool"}) | beside.get(section, set())


def test_defaults_of_the_model_are_those_of_the_table() -> None:
    place = Place((), "/", Notes("model", {}))
    for section, record in RECORDS.items():
        for field in dataclasses.fields(record):
            setting = keys_of(section).get(field.name)
            if setting and field.default is not dataclasses.MISSING:
                default = setting.default
                read = default if default in ("", None) else setting.kind.read(default, place)
                assert field.default in (read, frozenset(read) if isinstance(read, tuple) else read), field.name


def test_rows_are_well_formed() -> None:
    assert len({(row.section, row.key) for row in SETTINGS}) == len(SETTINGS)
    for row in SETTINGS:
        assert row.section in SECTIONS
        assert row.help
        assert not row.help.endswith(".")


def test_what_takes_a_restart_is_what_a_reload_refuses() -> None:
    assert {row.key for row in COLD} == {(row.section, row.key) for row in SETTINGS if row.restart}


def test_what_takes_new_workers_is_what_a_reload_starts_them_for() -> None:
    cold = {(row.section, row.key) for row in SETTINGS if not row.hot and not row.restart}
    assert {row.key for row in RENEWING} == cold
