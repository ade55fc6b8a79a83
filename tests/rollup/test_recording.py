"""The queries of docs/scale.md run. Roll-ups grow with their session, and never stand in its way."""

import re
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import program_events
from jaxprof.jobs import job as rollup_job
from jaxprof.jobs.job import read_job_figures
from jaxprof.rollup.making import file_of
from jaxprof.rollup.recording import RollUpRecorder
from jaxprof.runner.session_recorder import SessionRecorder
from jaxprof.session import LogWriter
from job_folders import job_figures, loop, read_job
from rollup.test_job import iterations, numbered, roll_all
from waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def test_what_the_page_asks_is_answered(tmp_path, monkeypatch):
    page = PAGE.read_text()
    asked = [sql for sql in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "'run.jaxprof.d/" in sql]
    [arrow] = [code for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "pyarrow" in code]
    monkeypatch.chdir(tmp_path)
    roll_all(numbered(tmp_path / "run.jaxprof.d", iterations(8000), iterations(8000, seed=1), iterations(8000, seed=2)))
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
    rollup = RollUpRecorder(writer.header, path, 0, first_seconds)
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
    assert rollup.failure is None
    assert rollup.written >= 2
    assert file_of(tmp_path, "processes", 0).read_bytes() != running
    expected = job_figures(read_job(tmp_path)).processes[0]
    monkeypatch.setattr(rollup_job, "load", pytest.fail)  # nothing is read but the roll-up
    found = read_job_figures(tmp_path).processes[0]
    assert (found.status, found.shares) == ("ok", expected.shares)


def test_a_short_program_has_none(tmp_path):
    with recorded(tmp_path, 60.0) as (recorder, rollup):
        recorder.close("finished")
    assert not rollup.written
    assert not (tmp_path / "rollup").exists()


def test_failed_roll_up_keeps_the_last_one(tmp_path, monkeypatch):
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
