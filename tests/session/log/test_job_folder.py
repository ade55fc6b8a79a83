"""Folders of jobs as they are found: processes missing, doubled, torn, of other jobs and versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof import events as e
from jaxprof.errors import FileRefusedError
from jaxprof.session import Session
from jaxprof.session.log.job_folder import is_job_folder, read_job
from job_folders import JOB, job, loop, process


def test_a_process_that_was_started_again_counts_once(tmp_path: Path) -> None:
    read = read_job(job(tmp_path, loop(1), loop(1), loop(1)), Session)
    assert (read.count, read.job, read.missing, read.notices) == (3, JOB, (), ())
    assert [(member.index, member.session.header.host) for member in read.members] == [
        (0, "node0"), (1, "node1"), (2, "node2"),
    ]  # fmt: skip
    again = process(tmp_path, 1, 3, *loop(1))
    read = read_job(tmp_path, Session)
    assert (again.name, read.members[1].path) == ("process-00001-2.jaxprof", again)
    assert read.notices == ("process 1 was started again: process-00001.jaxprof is left out",)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    for index in (0, 3):
        process(tmp_path, index, 32, *loop(1))
    read = read_job(tmp_path, Session)
    assert read.count == 32
    assert len(read.missing) == 30
    [notice] = read.notices
    assert notice == "30 of 32 processes have no session here: 1, 2, 4, 5, 6, 7, 8, 9 and 22 more"


def test_how_many_there_are_is_unknown_until_jax_says_it(tmp_path: Path) -> None:
    for index in (0, 1):
        process(tmp_path, index, 0, *loop(1))
    read = read_job(tmp_path, Session)
    assert (read.count, read.missing) == (2, ())
    [notice] = read.notices
    assert notice.startswith("the number of processes is unknown")
    process(tmp_path, 2, 0, e.ProcessIdentified(run="r1", index=2, count=4))
    read = read_job(tmp_path, Session)
    assert (read.count, read.missing) == (4, (3,))
    assert len(read.notices) == 1


def test_what_cannot_be_read_is_left_out_with_a_notice(tmp_path: Path) -> None:
    job(tmp_path, loop(1), loop(1))
    (tmp_path / "process-00001.jaxprof").write_bytes(b"\x00 nothing of ours")
    (tmp_path / "notes.txt").write_text("not a session")
    read = read_job(tmp_path, Session)
    assert [member.index for member in read.members] == [0]
    assert "process-00001.jaxprof" in read.notices[0]
    assert "1 of 2 processes have no session here: 1" in read.notices[1]


def test_sessions_that_do_not_belong_together_are_told(tmp_path: Path) -> None:
    process(tmp_path, 0, 2, *loop(1))
    process(tmp_path, 1, 4, *loop(1), header={"job": "slurm-99.0", "jaxprof": "0.0.9"})
    notices = " | ".join(read_job(tmp_path, Session).notices)
    assert "sessions of 2 jobs are in one folder: slurm-1234.0, slurm-99.0" in notices
    assert "report different numbers of processes: 2, 4" in notices
    assert "several versions of jaxprof: 0.0.9, 0.1.0" in notices
    assert "2 of 4 processes have no session here: 2, 3" in notices


def test_a_folder_without_sessions_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileRefusedError, match="holds no session of a process"):
        read_job(tmp_path, Session)
    with pytest.raises(FileRefusedError, match="cannot be read"):
        read_job(tmp_path / "nothing.jaxprof.d", Session)
    assert not is_job_folder(tmp_path)


def test_no_more_processes_are_opened_than_the_limit_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXPROF_LIMITS", "processes=2")
    job(tmp_path, loop(1), loop(1), loop(1))
    read = read_job(tmp_path, Session)
    assert [member.index for member in read.members] == [0, 1]
    assert "more than 2 processes" in read.notices[0]
