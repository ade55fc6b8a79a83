"""Folders of jobs: how many processes there are, and how many are read. As a folder grows, nothing is read twice, and
what is torn or deleted costs only itself. `tests/cli/test_job.py` has folders as they should not be."""

import os
import shutil
import socket
from contextlib import closing
from dataclasses import replace

import pytest

import program_events
from jaxprof import events as e
from jaxprof.base.errors import FileRefusedError
from jaxprof.jobs.folder import JobFollower, check_job, is_growing
from jaxprof.jobs.job import read_job_files
from jaxprof.jobs.watch import JobWatch
from jaxprof.session import LogWriter
from jaxprof.session.files import is_job_folder, session_path
from job_folders import JOB, job, job_figures, loop, process, read_job, recording


def read(folder):
    """The figures of a job, from its sessions."""
    return job_figures(read_job(folder))


def test_how_many_there_are_is_unknown_until_jax_says_it(tmp_path):
    for index in (0, 1):
        process(tmp_path, index, 0, *loop(1))
    found = read(tmp_path)
    assert found.count == 2
    assert found.notices[0].startswith("the number of processes is unknown")
    process(tmp_path, 2, 0, e.ProcessIdentified(run="r1", index=2, count=4))
    found = read(tmp_path)
    assert (found.count, found.notices[0]) == (4, "1 of 4 processes have no session here: 3")


def test_a_folder_without_sessions_is_refused(tmp_path):
    with pytest.raises(FileRefusedError, match="holds no session of a process"):
        read(tmp_path)
    with pytest.raises(FileRefusedError, match="cannot be read"):
        read(tmp_path / "nothing.jaxprof.d")
    assert not is_job_folder(tmp_path)
    with pytest.raises(FileRefusedError, match="holds no session of a process"):
        check_job(tmp_path)
    check_job(job(tmp_path, loop(1)))


def test_processes_are_read_up_to_the_limit(tmp_path, monkeypatch):
    job(tmp_path, loop(1), loop(1), loop(1))
    whole = read(tmp_path)
    assert (whole.count, whole.job) == (3, JOB)
    monkeypatch.setenv("JAXPROF_LIMITS", "processes=2")
    some = read(tmp_path)
    assert [each.index for each in some.processes] == [0, 1]
    assert "more than 2 processes" in some.notices[0]
    monkeypatch.delenv("JAXPROF_LIMITS")
    session_path(tmp_path, 3).write_text("nothing of ours")
    some = read(tmp_path)
    assert some.count == 3
    assert "neither a session nor a profile" in some.notices[0]


@pytest.fixture
def folder(tmp_path):
    """Of a job of two processes that have ended."""
    return job(tmp_path, loop(5), loop(5))


def following(folder):
    """Who has read what is there."""
    follower = JobFollower(folder)
    follower.poll()
    return follower


def test_it_reads_what_a_whole_reading_reads(folder):
    process(folder, 1, 2, *loop(3))  # started again
    follower = JobFollower(folder)
    assert follower.poll() == {0, 1}
    whole = read_job_files(folder)
    assert follower.notices == whole.notices
    assert [str(member.path) for member in follower.members.values()] == [each.path for each in whole.figures.values()]
    assert not any(is_growing(member.session) for member in follower.members.values())
    assert follower.poll() == frozenset()
    assert follower.members[1].path.name == "process-00001-2.jaxprof"


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="this system does not say which files are open")
def test_no_session_stays_open_between_two_looks(folder):
    before = len(os.listdir("/proc/self/fd"))
    follower = following(folder)
    assert len(follower.members) == 2
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_session_that_grows_is_read_on_and_a_new_one_is_found(folder):
    follower = following(folder)
    header = replace(program_events.HEADER, session="c2", host=socket.gethostname(), process_index=2, job=JOB)
    writer = LogWriter(header, session_path(folder, 2))
    for event in program_events.program()[:2]:
        writer.append(event)
    try:
        assert follower.poll() == {2}
        assert is_growing(follower.members[2].session)
        session = follower.members[2].session
        writer.append(program_events.sampled(0, 1.0, {"device_busy": 1.0}))
        writer.append(program_events.sampled(1, 1.0, {"device_busy": 1.0}))
        assert follower.poll() == {2}
        assert follower.members[2].session is session, "it is not read anew"
        assert len(session.runs["r1"].program.sampled) == 2
    finally:
        writer.close()
    assert follower.poll() == {2}
    assert not is_growing(follower.members[2].session)


def test_a_torn_session_is_said_and_read_once_it_is_whole(folder):
    path = folder / "process-00002.jaxprof"
    path.write_text("")
    follower = JobFollower(folder)
    assert follower.poll() == {0, 1, 2}
    assert any("is empty" in notice for notice in follower.notices)
    assert follower.poll() == frozenset()
    path.write_text((folder / "process-00001.jaxprof").read_text().replace("5e5500000001", "5e5500000002"))
    assert follower.poll() == {2}
    assert not any("is empty" in notice for notice in follower.notices)
    assert len(follower.members) == 3


def test_what_is_deleted_stays_as_it_was_read(folder):
    follower = following(folder)
    (folder / "process-00001.jaxprof").unlink()
    follower.poll()
    assert list(follower.members) == [0, 1]
    assert "process-00001.jaxprof was deleted; what was read of it is shown" in follower.notices
    shutil.rmtree(folder)
    with pytest.raises(FileRefusedError, match="cannot be read"):
        follower.poll()
    assert len(follower.members) == 2


def test_a_writer_on_another_host_counts_as_gone_after_silence(folder, monkeypatch):
    path = folder / "process-00001.jaxprof"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    follower = following(folder)
    assert is_growing(follower.members[1].session), "node1 is not this host, and its file was written just now"
    old = path.stat().st_mtime - 60
    os.utime(path, (old, old))
    assert follower.poll() == {1}
    assert not is_growing(follower.members[1].session)
    monkeypatch.setattr("socket.gethostname", lambda: "node1")
    os.utime(path)
    assert not is_growing(following(folder).members[1].session), "nobody holds its lock here"


def test_watch_reports_a_stall_and_its_end_once(tmp_path):
    said, writers = [], []
    watch = JobWatch(tmp_path, said.append)
    for index in range(3):
        header, events = recording(index, 3, *loop(), wall=None)
        writers.append(LogWriter(header, session_path(tmp_path, index)))
        for event in events:
            writers[-1].append(event)
    try:
        watch.look(0.0)
        assert said == [], "all of them work"
        for index, writer in enumerate(writers):
            waits = {"kind": "sync", "wait": e.SystemWait(state="S", call="futex")} if index else {}
            writer.append(program_events.stands(**waits))
        for now in range(5, 60, 5):
            watch.look(float(now))
        (sentence,) = said
        assert sentence.startswith("process 0 of 3 stands still since step 188 (30.0 s) at train.py:91 in time.sleep()")
        for writer in writers:
            writer.append(replace(program_events.stands(), over=True))
        for now in range(60, 400, 5):
            watch.look(float(now))
        assert said[1:] == ["the job goes on"]
    finally:
        for writer in writers:
            writer.close()


def test_a_watch_looks_often_while_it_has_said_nothing(tmp_path):
    """Processes that wait report it long before the one that they wait for is known to be to blame."""
    said: list[str] = []
    watch = JobWatch(tmp_path, said.append)
    header, events = recording(0, 2, *loop(), wall=None)
    with closing(LogWriter(header, session_path(tmp_path, 0))) as writer:
        for event in events:
            writer.append(event)
        for now in range(0, 200, 5):
            writer.append(program_events.stands(10.0))
            watch.look(float(now))
        assert said == []
        for now in range(200, 225, 5):
            writer.append(program_events.stands(30.0, until=70.0))
            watch.look(float(now))
    assert len(said) == 1


def test_a_watch_says_a_failure_that_came_during_its_pause(tmp_path):
    said: list[str] = []
    watch = JobWatch(tmp_path, said.append)
    process(tmp_path, 0, 0, *loop())
    watch.look(5.0)
    assert said == [], "one has ended well, and the job is not read again at once"
    process(tmp_path, 1, 0, *loop(), exit_code=1)
    watch.look(10.0)
    watch.look(15.0)
    assert any("process 1" in line for line in said)
