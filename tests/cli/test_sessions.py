import os
import shutil

import pytest

import job_folders
from jaxprof.cli.output import ExitCode


def test_the_list_has_sizes_and_their_total(call, kept, kept_job):
    said = call("sessions")
    assert len(said.out.splitlines()) == 4, said.out
    for words in ("selu", "complete, 1 failed", "2 ok, 1 missing", "train.py · 2 processes", "1 session and 1 job"):
        assert words in said.out
    data = call("sessions", "list", "--format", "json").data
    job, session = data["sessions"]
    assert data["size_bytes"] == job["size_bytes"] + kept.stat().st_size
    assert (session["workloads"], [run["status"] for run in session["runs"]]) == (["selu"], ["ok", "ok", "failed"])
    summary = job["job_summary"]
    assert job["path"] == str(kept_job)
    assert summary["recorded_processes"] == 2
    assert summary["missing_processes"] == 1
    assert (summary["by_status"], session["job_summary"]) == ([{"status": "ok", "count": 2}], None)


def test_a_kept_session_may_be_called_like_a_file(call, kept):
    assert call("sessions", "rename", "last", "run.hlo").code == ExitCode.OK
    assert call("open", "run.hlo").code == ExitCode.OK


def test_deleting_asks_and_without_a_terminal_wants_yes(call, kept, kept_job, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    for name, path in (("0123", kept), ("train", kept_job)):
        said = call("sessions", "delete", name)
        assert said.code == ExitCode.USAGE
        assert "--yes" in said.err
        assert path.exists()
        assert call("sessions", "delete", name, "--yes").code == 0
        assert not path.exists()


def test_prune_keeps_the_newest(call, kept):
    older = kept.with_name("older.jaxprof")
    shutil.copy(kept, older)
    os.utime(older, (1, 1))
    for wrong in ((), ("--max-size", "9" * 400)):
        assert call("sessions", "prune", *wrong).code == ExitCode.USAGE
    refused = call("sessions", "prune", "--keep", "1")
    assert refused.code == ExitCode.USAGE
    assert str(older) in refused.err
    assert older.exists()
    assert call("sessions", "prune", "--keep", "1", "--yes").code == 0
    assert not older.exists()
    assert kept.exists()


@pytest.fixture
def kept_job(kept):
    """A job of two processes, of which a third has no session here, newer than the session."""
    folder = kept.with_name("train.jaxprof.d")
    folder.mkdir()
    for index in (0, 1):
        job_folders.process(folder, index, 3, *job_folders.loop())
        os.utime(folder / f"process-{index:05}.jaxprof", (4e9, 4e9))
    return folder
