"""`jaxprof config`, and what settings are to `run` and the app."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.cli.exit_codes import ExitCode


def test_settings_are_shown_with_where_they_are_from(
    call: Caller, state_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.jaxprof]\nbudget = 5\n")
    monkeypatch.setenv("JAXPROF_DEVICES", "cuda:0,cpu:0")
    assert call("config", "set", "preset", "published").code == ExitCode.OK
    lines = {line.split()[0]: line for line in call("config").out.splitlines() if line}
    assert str(state_home / "config.toml") in lines["preset"]
    assert "published" in lines["preset"]
    assert "5 s" in lines["budget"]
    assert str(tmp_path / "pyproject.toml") in lines["budget"]
    assert "JAXPROF_DEVICES" in lines["devices"]
    assert "not set" in lines["theme"]
    assert call("config", "path").out == f"{state_home / 'config.toml'}\n"


def test_a_value_is_set_and_taken_out(call: Caller, state_home: Path) -> None:
    call("config", "set", "devices", "cuda:0,cpu:0")
    call("config", "set", "budget", "2.5")
    call("config", "set", "keys.results.compare", "ctrl+k")
    text = (state_home / "config.toml").read_text()
    assert text == 'devices = ["cuda:0", "cpu:0"]\nbudget = 2.5\n\n[keys]\n"results.compare" = "ctrl+k"\n'
    assert "keys.results.compare ctrl+k" in " ".join(call("config", "show").out.split())
    call("config", "unset", "budget")
    assert "budget" not in (state_home / "config.toml").read_text()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("preset", "slow", "preset is 'slow'"),
        ("them", "x", "unknown setting 'them'"),
        ("keys.results.compar", "x", "unknown action"),
        ("keys.results.compare", ",", "is empty"),
        ("budget", "-1", "budget is"),
    ],
)
def test_what_is_no_setting_is_refused(call: Caller, state_home: Path, name: str, value: str, says: str) -> None:
    said = call("config", "set", "--", name, value)
    assert said.code == ExitCode.USAGE
    assert says in said.err
    assert not (state_home / "config.toml").exists()


def test_run_takes_what_is_not_given_from_the_settings(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAXPROF_PRESET", "published")
    assert "default: published" in " ".join(call("run", "--help").out.split())
    monkeypatch.setenv("JAXPROF_PRESET", "fast")
    said = call("run", "selu")
    assert said.code == ExitCode.USAGE
    assert "JAXPROF_PRESET: preset is 'fast'" in said.err


def test_the_file_is_made_for_the_editor_and_checked_afterwards(
    call: Caller, state_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho \'preset = "slow"\' >> "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    said = call("config", "edit")
    assert "preset is 'slow'" in said.err
    assert said.code == ExitCode.USAGE
    assert (state_home / "config.toml").read_text().startswith("# Settings of jaxprof")
