"""Roll-ups that grow with their session, and never stand in its way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import program_events
from jaxprof.analysis.jobs.job import job_figures
from jaxprof.rollup import job as rollup_job
from jaxprof.rollup.files import file_of
from jaxprof.rollup.job import read_job_figures
from jaxprof.rollup.recording import RollUpRecorder
from jaxprof.runner.session_recorder import SessionRecorder
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from jaxprof.session.log.job_folder import read_job
from job_folders import loop


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def recorded(folder: Path, first_seconds: float) -> Iterator[tuple[SessionRecorder, RollUpRecorder]]:
    path = folder / "process-00000.jaxprof"
    writer = LogWriter(program_events.HEADER, path)
    rollup = RollUpRecorder(writer.header, path, first_seconds)
    recorder = SessionRecorder(writer, rollup.listen)
    yield recorder, rollup
    rollup.close()


def test_it_is_written_while_the_program_runs_and_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = program_events.program(*loop(), wall=20.0)
    with recorded(tmp_path, 0.05) as (recorder, rollup):
        for event in events[:10]:
            recorder.emit(event)
        recorder.flush()
        until(lambda: rollup.written > 0)
        running = file_of(tmp_path, "processes", 0).read_bytes()
        for event in events[10:-1]:
            recorder.emit(event)
        recorder.close("finished")
    assert rollup.failure is None
    assert rollup.written >= 2
    assert file_of(tmp_path, "processes", 0).read_bytes() != running
    monkeypatch.setattr(rollup_job, "load", pytest.fail)  # nothing is read but the roll-up
    found = read_job_figures(tmp_path)
    monkeypatch.undo()
    expected = job_figures(read_job(tmp_path, Session))
    assert found.processes[0].status == "ok"
    assert found.processes[0].shares == expected.processes[0].shares


def test_a_short_program_has_none(tmp_path: Path) -> None:
    with recorded(tmp_path, 60.0) as (recorder, rollup):
        for event in program_events.program(*loop())[:-1]:
            recorder.emit(event)
        recorder.close("finished")
    assert not rollup.written
    assert not (tmp_path / "rollup").exists()


def test_the_last_whole_one_stays_where_the_next_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full in the middle of a file: the recording goes on."""
    with recorded(tmp_path, 0.05) as (recorder, rollup):
        for event in program_events.program(*loop())[:-1]:
            recorder.emit(event)
        recorder.flush()
        until(lambda: rollup.written > 0)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}

        def full(table: object, path: Path, **options: object) -> None:
            path.write_bytes(b"PAR1 half")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("pyarrow.parquet.write_table", full)
        recorder.close("finished")
    assert isinstance(rollup.failure, OSError)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path in before} == before
    assert not list(tmp_path.rglob("*.partial"))
    assert read_job_figures(tmp_path).processes[0].status == "ok", "its session is read"
