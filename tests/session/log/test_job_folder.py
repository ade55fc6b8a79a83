"""Folders of jobs as they are found: processes missing, doubled, torn, of other jobs and versions."""

from __future__ import annotations

import pytest

from cli.test_job_bad_folders import BAD
from golden import held_cases
from jaxprof import events as e
from jaxprof.errors import FileRefusedError
from jaxprof.session import Session
from jaxprof.session.log.job_folder import is_job_folder, read_job
from job_folders import JOB, job, loop, process


def test_what_cannot_be_read_is_missing_or_does_not_belong_there_is_said(tmp_path):
    cases = {}
    for spoil in BAD:
        folder = job(tmp_path / spoil.__name__, loop(1), loop(1), loop(1))
        spoil(folder)
        read = read_job(folder, Session)
        members = ", ".join(f"{member.index} {member.path.name} {member.live}" for member in read.members)
        told = (f"{read.count} of {read.job}, without {read.missing[:9]}: {members}", *read.notices)
        cases[spoil.__name__] = "".join(f"  {line}\n" for line in told).replace(str(folder), "FOLDER")
    held_cases("read_jobs.txt", cases)


def test_how_many_there_are_is_unknown_until_jax_says_it(tmp_path):
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


def test_a_folder_without_sessions_is_refused(tmp_path):
    with pytest.raises(FileRefusedError, match="holds no session of a process"):
        read_job(tmp_path, Session)
    with pytest.raises(FileRefusedError, match="cannot be read"):
        read_job(tmp_path / "nothing.jaxprof.d", Session)
    assert not is_job_folder(tmp_path)


def test_no_more_processes_are_opened_than_the_limit_allows(tmp_path, monkeypatch):
    job(tmp_path, loop(1), loop(1), loop(1))
    whole = read_job(tmp_path, Session)
    assert (whole.count, whole.job, whole.missing, whole.notices) == (3, JOB, (), ())
    monkeypatch.setenv("JAXPROF_LIMITS", "processes=2")
    read = read_job(tmp_path, Session)
    assert [member.index for member in read.members] == [0, 1]
    assert "more than 2 processes" in read.notices[0]
