from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.units import bytes_


def test_the_list_has_sizes_and_their_total(call: Caller, kept: Path) -> None:
    said = call("sessions")
    assert said.code == 0
    assert "selu" in said.out
    assert "complete, 1 failed" in said.out
    assert f"1 session, {bytes_(kept.stat().st_size)}, in {kept.parent}" in said.out
    assert call("sessions", "list").out == said.out


def test_a_run_that_was_cancelled_did_not_fail(call: Caller, kept: Path) -> None:
    kept.write_text(kept.read_text().replace('"status":"failed"', '"status":"cancelled"'))
    said = call("sessions")
    assert "complete, 1 cancelled" in said.out
    assert "failed" not in said.out


def test_the_list_as_json(call: Caller, kept: Path) -> None:
    data = call("sessions", "--format", "json").data
    assert data["size_bytes"] == kept.stat().st_size
    assert data["sessions"][0]["workloads"] == ["selu"]
    assert [run["status"] for run in data["sessions"][0]["runs"]] == ["ok", "ok", "failed"]


def test_an_empty_folder_is_told(call: Caller) -> None:
    assert "0 sessions, 0 B" in call("sessions").out


def test_rename(call: Caller, kept: Path) -> None:
    assert call("sessions", "rename", "0123", "baseline run").code == 0
    assert (kept.parent / "baseline run.jaxprof").exists()
    assert call("sessions", "rename", "baseline", "a/b").code == ExitCode.USAGE


def test_deleting_asks_and_without_a_terminal_wants_yes(
    call: Caller, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    said = call("sessions", "delete", "0123")
    assert said.code == ExitCode.USAGE
    assert "--yes" in said.err
    assert kept.exists()
    assert call("sessions", "delete", "0123", "--yes").code == 0
    assert not kept.exists()


def test_prune_keeps_the_newest(call: Caller, kept: Path) -> None:
    older = kept.with_name("older.jaxprof")
    shutil.copy(kept, older)
    os.utime(older, (1, 1))
    assert call("sessions", "prune").code == ExitCode.USAGE
    assert call("sessions", "prune", "--keep", "1", "--dry-run").out.strip() == str(older)
    assert older.exists()
    assert call("sessions", "prune", "--keep", "1", "--yes").code == 0
    assert not older.exists()
    assert kept.exists()


def test_prune_by_size(call: Caller, kept: Path) -> None:
    assert call("sessions", "prune", "--max-size", "1G", "--yes").err == "Nothing to delete.\n"
    assert call("sessions", "prune", "--max-size", "many").code == ExitCode.USAGE
    assert call("sessions", "prune", "--max-size", "1k", "--yes").code == 0
    assert not kept.exists()


def test_the_folder_is_printed(call: Caller, state_home: Path) -> None:
    assert call("sessions", "path").out == f"{state_home / 'sessions'}\n"
