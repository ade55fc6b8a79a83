from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

import job_folders
from cli.calling import Caller
from jaxprof.cli.output import ExitCode
from jaxprof.units import bytes_


def test_the_list_has_sizes_and_their_total(call: Caller, kept: Path) -> None:
    said = call("sessions")
    assert said.code == 0
    assert "selu" in said.out
    assert "complete, 1 failed" in said.out
    assert f"1 session, {bytes_(kept.stat().st_size)}, in {kept.parent}" in said.out
    assert call("sessions", "list").out == said.out


def test_the_list_as_json(call: Caller, kept: Path) -> None:
    data = call("sessions", "--format", "json").data
    assert data["size_bytes"] == kept.stat().st_size
    assert data["sessions"][0]["workloads"] == ["selu"]
    assert [run["status"] for run in data["sessions"][0]["runs"]] == ["ok", "ok", "failed"]


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


def test_scrub_writes_a_copy_and_says_what_it_replaced(
    call: Caller, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with kept.open("a") as file:
        file.write('{"type":"log_line","run":"r1","stream":"stdout","text":"token=kq7Zr93hWm"}\n')
    said = call("sessions", "scrub", "last")
    copy = tmp_path / f"{kept.name.removesuffix('.jaxprof')}-scrubbed.jaxprof"
    assert said.out.strip() == copy.name
    assert "Replaced: 1 secret, " in said.err
    assert "1 line of output" in said.err
    assert "kq7Zr93hWm" in kept.read_text()
    assert "kq7Zr93hWm" not in copy.read_text()
    assert call("sessions", "scrub", "last", "--out", str(copy)).code == ExitCode.USAGE
    assert call("sessions", "scrub", str(kept), "--in-place", "--format", "json").data["secrets_replaced"] == 1
    assert "kq7Zr93hWm" not in kept.read_text()
    assert call("sessions", "scrub", str(kept), "--in-place", "--out", "x").code == ExitCode.USAGE


def test_prune_keeps_the_newest(call: Caller, kept: Path) -> None:
    older = kept.with_name("older.jaxprof")
    shutil.copy(kept, older)
    os.utime(older, (1, 1))
    assert call("sessions", "prune").code == ExitCode.USAGE
    assert call("sessions", "prune", "--max-size", "9" * 400).code == ExitCode.USAGE
    assert call("sessions", "prune", "--keep", "1", "--dry-run").out.strip() == str(older)
    assert older.exists()
    assert call("sessions", "prune", "--keep", "1", "--yes").code == 0
    assert not older.exists()
    assert kept.exists()


@pytest.fixture
def kept_job(kept: Path) -> Path:
    """A job of two processes, of which a third has no session here, newer than the session."""
    folder = kept.with_name("train.jaxprof.d")
    folder.mkdir()
    for index in (0, 1):
        job_folders.process(folder, index, 3, *job_folders.loop())
        os.utime(folder / f"process-{index:05}.jaxprof", (4e9, 4e9))
    return folder


def test_a_job_is_one_line(call: Caller, kept: Path, kept_job: Path) -> None:
    said = call("sessions")
    assert len(said.out.splitlines()) == 4, said.out
    assert "2 ok, 1 missing" in said.out
    assert "train.py · 2 processes" in said.out
    assert "1 session and 1 job" in said.out
    assert "current folder" not in said.out
    job, session = call("sessions", "--format", "json").data["sessions"]
    assert (job["path"], job["job_summary"]["recorded_processes"], job["job_summary"]["missing_processes"]) == (
        str(kept_job),
        2,
        1,
    )
    assert job["job_summary"]["by_status"] == [{"status": "ok", "count": 2}]
    assert session["job_summary"] is None


@pytest.mark.process
def test_last_is_the_newest_job_or_session(call: Caller, kept: Path, kept_job: Path) -> None:
    for name in ("last", "train"):
        assert json.loads(call("show", name, "--format", "json").out)["kind"] == "job"
    assert "job of 3 processes" in call("explain").out
    assert call("query", "last", "SELECT count(*) AS n FROM sessions", "--format", "json").data["rows"] == [{"n": 2}]
    os.utime(kept, (5e9, 5e9))
    assert json.loads(call("show", "last", "--format", "json").out)["kind"] == "session"


def test_deleting_a_job_asks_once_and_deletes_it_whole(call: Caller, kept: Path, kept_job: Path) -> None:
    said = call("sessions", "delete", "train", "--yes")
    assert said.code == 0
    assert str(kept_job) in said.err
    assert "Deleted 1 job (" in said.err
    assert not kept_job.exists()
    assert kept.exists()
