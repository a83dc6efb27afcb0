"""What `explain` says of keys whose servers are found out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.front.topology.cluster_kit import config, slot_of
from tests.kit.fleet import ROOT


def explain(folder: Path, text: str, *words: str) -> str:
    """Its text."""
    file = folder / "proxy.toml"
    file.write_text(text)
    command = [sys.executable, "-c", "import sys; from hyper_proxy.cli.main import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "explain", "-c", str(file), "shop", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("key", ["foo", "user:{42}:name", "{}x"])
def test_the_slot_of_a_key_is_shown(tmp_path: Path, key: str) -> None:
    said = explain(tmp_path, config('"10.0.0.1:6379"', 6380), "GET", key)
    assert f"slot {slot_of(key)}: the cluster is asked which server has it" in said
    assert f"-> shard {slot_of(key)}, found out: GET {key}" in said


def test_keys_of_several_slots_are_split(tmp_path: Path) -> None:
    said = explain(tmp_path, config('"10.0.0.1:6379"', 6380), "MGET", "a", "b", "{a}c")
    assert f"-> shard {slot_of('a')}, found out: MGET a {{a}}c" in said
    assert f"-> shard {slot_of('b')}, found out: MGET b" in said


def test_the_master_of_a_key_is_shown_by_its_name(tmp_path: Path) -> None:
    text = config('"10.0.0.1:26379"', 6380, '  masters = ["alpha", "beta"]\n', "sentinel")
    said = [explain(tmp_path, text, "GET", f"key:{number}") for number in range(12)]
    for name in ("alpha", "beta"):
        assert any(f"the sentinels are asked where the master '{name}' is" in one for one in said)
