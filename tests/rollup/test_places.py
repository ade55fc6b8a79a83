"""Roll-ups of a job wherever it is, by whomever they are made: the same bytes. The queries of docs/scale.md run. Roll-
ups that grow with their session, and never stand in its way."""

import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import flaky_store
import program_events
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.errors import UsageError
from jaxprof.rollup import job as rollup_job
from jaxprof.rollup import on_ray
from jaxprof.rollup.files import file_of
from jaxprof.rollup.job import read_job_figures
from jaxprof.rollup.making import SessionPlace, due_in, roll_up_at
from jaxprof.rollup.on_ray import cluster, roll_up_on
from jaxprof.rollup.recording import RollUpRecorder
from jaxprof.runner.session_recorder import SessionRecorder
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from jaxprof.session.log.job_folder import read_job
from job_folders import job, loop
from rollup.test_job import numbered, passes, roll_all
from waiting import until


@pytest.fixture
def folder(tmp_path):
    """Written at a full second: a store may say no more."""
    made = job(tmp_path / "run.jaxprof.d", loop(), loop(data=0.3), loop(host=0.1))
    for path in made.iterdir():
        os.utime(path, (1_790_000_000, 1_790_000_000))
    return made


@pytest.fixture
def flaky():
    return flaky_store.register()


def tables(folder):
    root = folder / "rollup"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*.parquet")}


def copied(folder, name):
    return Path(shutil.copytree(folder, folder.parent / name, copy_function=shutil.copy2))


def made(folder):
    sessions, _ = due_in(folder)
    reports = [roll_up_at(session) for session in sessions]
    assert [report.error for report in reports] == [""] * len(reports)
    return [report.session for report in reports]


def test_in_a_store_the_tables_are_those_that_are_made_on_a_disk(folder, flaky):
    stored = copied(folder, "stored.jaxprof.d")
    made(str(folder))
    assert made(f"flaky://{stored}") == [f"process-0000{index}.jaxprof" for index in range(3)]
    assert tables(stored) == tables(folder)
    assert tables(folder)


def test_what_is_current_is_left_alone(folder, flaky):
    url = f"flaky://{folder}"
    made(url)
    assert due_in(url) == ([], [])
    (folder / "rollup" / "processes" / "process-00001.parquet").unlink()
    with (folder / "process-00002.jaxprof").open("a") as session:
        session.write("{}\n")
    for place in (url, str(folder)):
        assert due_in(place)[0] == [SessionPlace(place, f"process-0000{index}.jaxprof") for index in (1, 2)]
    assert len(due_in(url, every=True)[0]) == 3


def test_a_store_that_fails_in_the_middle_is_an_error_of_that_session(folder, flaky):
    sessions, _ = due_in(f"flaky://{folder}")
    flaky.error, flaky.only = ConnectionResetError("connection reset"), "put"
    assert roll_up_at(sessions[0]).error == "connection reset"


@pytest.mark.timeout(300)
def test_on_ray_the_tables_are_those_that_are_made_here(folder, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", str(Path(on_ray.__file__).parents[2]))
    shared = copied(folder, "shared.jaxprof.d")
    made(str(folder))
    (shared / "process-00009.jaxprof").write_text("torn")
    with cluster("local", 2) as ray:
        reports = list(roll_up_on(ray, due_in(f"file://{shared}")[0]))
        assert [report.session for report in reports if report.error] == ["process-00009.jaxprof"]
        monkeypatch.setattr(on_ray, "__version__", "0.0.1")
        with pytest.raises(UsageError, match=r"have jaxprof .*, and this is 0\.0\.1"):
            on_ray._check_nodes(ray)
    assert tables(shared) == tables(folder)


PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_what_the_page_asks_is_answered(tmp_path, monkeypatch):
    page = PAGE.read_text()
    asked = [sql for sql in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "'run.jaxprof.d/" in sql]
    [arrow] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "pyarrow" in code]
    monkeypatch.chdir(tmp_path)
    roll_all(numbered(tmp_path / "run.jaxprof.d", passes(8000), passes(8000, seed=1), passes(8000, seed=2)))
    steps, own = (duckdb.sql(sql).fetchall() for sql in asked)
    assert sorted(steps) == [(process, pytest.approx(0.0025, abs=2.5e-5)) for process in range(3)]
    assert own[0] == ("node1", 1, pytest.approx(0.3, abs=0.01))
    found = {}
    exec(compile(arrow, "scale.md", "exec"), found)
    assert found["table"].num_rows == 3 * 2000


@contextmanager
def recorded(folder, first_seconds=0.05, most=-1):
    """The recording of a program, of which the first events are there, with its roll-up."""
    path = folder / "process-00000.jaxprof"
    writer = LogWriter(program_events.HEADER, path)
    rollup = RollUpRecorder(writer.header, path, first_seconds)
    recorder = SessionRecorder(writer, rollup.listen)
    for event in EVENTS[:most]:
        recorder.emit(event)
    recorder.flush()
    if first_seconds < 1:
        until(lambda: rollup.written > 0)
    yield recorder, rollup
    rollup.close()


EVENTS = program_events.program(*loop(), wall=20.0)


def test_it_is_written_while_the_program_runs_and_at_its_end(tmp_path, monkeypatch):
    with recorded(tmp_path, most=10) as (recorder, rollup):
        running = file_of(tmp_path, "processes", 0).read_bytes()
        for event in EVENTS[10:-1]:
            recorder.emit(event)
        recorder.close("finished")
    assert (rollup.failure, rollup.written >= 2) == (None, True)
    assert file_of(tmp_path, "processes", 0).read_bytes() != running
    expected = job_figures(read_job(tmp_path, Session)).processes[0]
    monkeypatch.setattr(rollup_job, "load", pytest.fail)  # nothing is read but the roll-up
    found = read_job_figures(tmp_path).processes[0]
    assert (found.status, found.shares) == ("ok", expected.shares)


def test_a_short_program_has_none(tmp_path):
    with recorded(tmp_path, 60.0) as (recorder, rollup):
        recorder.close("finished")
    assert not rollup.written
    assert not (tmp_path / "rollup").exists()


def test_the_last_whole_one_stays_where_the_next_cannot_be_written(tmp_path, monkeypatch):
    """A disk that is full in the middle of a file: the recording goes on."""

    def full(table, path, **options):
        path.write_bytes(b"PAR1 half")
        raise OSError(28, "No space left on device")

    with recorded(tmp_path) as (recorder, rollup):
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
        monkeypatch.setattr("pyarrow.parquet.write_table", full)
        recorder.close("finished")
    assert isinstance(rollup.failure, OSError)
    assert {path: path.read_bytes() for path in before} == before
    assert not list(tmp_path.rglob("*.partial"))
    assert read_job_figures(tmp_path).processes[0].status == "ok", "its session is read"
